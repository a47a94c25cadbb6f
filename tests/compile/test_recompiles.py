"""What makes a function be captured again, and what does not."""

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compile import records
from flambeau.compiler import explain_recompile


@pytest.fixture
def captures():
    seen = []
    records.collected.append(seen)
    yield seen
    records.collected.remove(seen)


def trained(steps, with_scaler):
    """A training loop with everything that counts; its losses."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    opt = torch.optim.AdamW(net.parameters(), lr=0.1)
    warm = torch.optim.lr_scheduler.LinearLR(opt, total_iters=10)
    rest = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 20)
    schedule = torch.optim.lr_scheduler.SequentialLR(opt, [warm, rest], [10])
    scaler = torch.amp.GradScaler("cpu", enabled=with_scaler)
    seen = {"steps": 0, "mean": 0.0}

    def step(x):
        opt.zero_grad()
        loss = net(x).square().mean()
        scaler.scale(loss).backward()
        seen["steps"] += 1
        return loss

    def rate():
        schedule.step()
        return opt.param_groups[0]["lr"]

    def run(transform):
        compiled, found = transform(step), []
        for k in range(steps):
            loss = compiled(torch.full((2, 3), 0.1 * (k % 3)))
            scaler.step(opt)
            scaler.update()
            seen["mean"] += (loss.item() - seen["mean"]) / seen["steps"]
            found.append((round(seen["mean"], 6), round(rate(), 6)))
        return found

    return run


@pytest.mark.parametrize("with_scaler", [False, True])
def test_counters_and_rates_do_not_recompile(captures, with_scaler):
    want = trained(30, with_scaler)(lambda f: f)
    got = trained(30, with_scaler)(lambda f: torch.compile(f, backend="eager"))
    assert got == want
    assert len([c for kind, _, c in captures if kind == "capture"]) <= 2


def test_a_whole_step_with_a_schedule_is_captured_a_few_times(captures):
    net = nn.Linear(3, 1)
    opt = torch.optim.Adam(net.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(opt, 0.99)
    seen = {"steps": 0, "total": 0.0}

    @torch.compile(backend="eager")
    def step(x):
        opt.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        opt.step()
        schedule.step()
        seen["steps"] += 1
        seen["total"] += 0.5
        return loss

    for _ in range(30):
        step(torch.ones(2, 3))
    assert seen == {"steps": 30, "total": 15.0}
    assert opt.param_groups[0]["lr"] == pytest.approx(0.1 * 0.99**30)
    assert len([c for kind, _, c in captures if kind == "capture"]) <= 3


def test_explain_recompile_names_the_guard_and_both_values():
    @torch.compile(backend="eager", dynamic=False)
    def f(x, flag):
        return x * 2 if flag == "twice" else x

    f(torch.ones(2, 3), "twice")
    assert explain_recompile(f, torch.ones(2, 3), "twice") == []
    (found,) = explain_recompile(f, torch.ones(2, 3), flag="once")
    assert found == ("flag", "== 'twice'", "'once'")
    (found,) = explain_recompile(f, torch.ones(4, 3), "twice")
    assert (found.guard, found.old) == ("x", "is Tensor float32[2, 3]")


def test_explain_recompile_of_a_module():
    net = nn.Sequential(nn.Linear(3, 4))
    compiled = torch.compile(net, backend="eager")
    assert explain_recompile(compiled, torch.ones(2, 3)) == []
    compiled(torch.ones(2, 3))
    assert explain_recompile(compiled, torch.ones(2, 3)) == []
    (found,) = explain_recompile(compiled, torch.ones(2, 3, dtype=torch.float64))
    assert "float64" in found.new or "float32" in found.old
