"""Steps with a gradient scaler: a step that overflows leaves parameters and state as they were."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn, optim
from flambeau.compile import records

MAKERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    "adamw": lambda p: optim.AdamW(p, lr=0.1),
    "radam": lambda p: optim.RAdam(p, lr=0.1),
}


def run(name, clip, transform):
    """Numbers after each call, and what was captured during it."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = MAKERS[name](net.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)

    def step(a):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = net(a).float().pow(2).mean()
        scaler.scale(loss).backward()
        if clip:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    step = transform(step)
    found, captures = [], []
    for k in range(8):
        a = torch.randn(3, 4, generator=torch.Generator().manual_seed(k))
        seen = []
        records.collected.append(seen)
        loss = step(a * float("inf") if k in (3, 6) else a)
        records.collected.remove(seen)
        state = [v for s in optimizer.state.values() for v in s.values() if v is not None]
        parts = [loss, *net.parameters(), *state, scaler._scale, scaler._growth_tracker]
        found.append([p.detach().numpy().copy() for p in parts])
        captures.append([what for kind, _, what in seen if kind == "capture"])
    return found, captures


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("name", MAKERS)
def test_overflow_skips_the_step_in_one_graph(name, clip):
    want, _ = run(name, clip, lambda f: f)
    got, captures = run(name, clip, lambda f: torch.compile(f, backend="eager"))
    for ours, theirs in zip(got, want, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)
    later = [c for of_call in captures[1:] for c in of_call]
    assert [c.broken for c in later if c.broken is not None] == []
    assert len(later) <= 2  # RAdam's formula changes on the way


@pytest.mark.parametrize("name", MAKERS)
def test_native_programs_skip_too(name):
    want, _ = run(name, True, lambda f: f)
    got, _ = run(name, True, lambda f: torch.compile(f, mode="sync"))
    for ours, theirs in zip(got, want, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-2, atol=1e-3)
