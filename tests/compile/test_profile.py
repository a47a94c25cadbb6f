"""A profile of a compiled program: every kernel with its time, its work, and the same results."""

import json

import pytest

import flambeau as torch
from flambeau import nn, profiler
from flambeau.graph.accounting import nbytes, operations


def trained():
    """(step, x, losses): a compiled step on a fresh model."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(200, 300), nn.GELU(), nn.Linear(300, 30))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    @torch.compile(mode="sync")
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step, torch.randn(400, 200)


def test_kernels_are_in_the_table_and_the_results_are_the_same(tmp_path):
    plain, x = trained()
    wanted = [plain(x).item() for _ in range(4)]
    step, x = trained()
    with profiler.profile() as prof, profiler.record_function("all"):
        assert [step(x).item() for _ in range(4)] == wanted
    found = {e.key: e for e in prof.key_averages()}
    first, product = found["kernel linear+gelu"], found["kernel linear"]
    assert first.count == product.count == 4
    assert product.flops == 4 * 2 * 400 * 30 * 300
    assert first.flops > 4 * 2 * 400 * 300 * 200
    assert 0 < product.cpu_time_total <= found["all"].cpu_time_total
    table = prof.key_averages().table()
    assert "GFLOP/s" in table and "of peak" in table
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    spans = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    shown = [s for s in spans if s["name"] == "kernel linear"]
    assert len(shown) == 4 and all(s["args"]["flops"] and s["dur"] >= 0 for s in shown)
    assert [s["ts"] for s in shown] == sorted(s["ts"] for s in shown)


def test_a_product_and_its_activation_are_one_kernel_with_the_work_of_both():
    layer, x = nn.Linear(200, 300), torch.randn(400, 200)
    run = torch.compile(lambda x: layer(x).relu(), mode="sync")
    with torch.no_grad(), profiler.profile() as prof:
        run(x)
    (event,) = [e for e in prof.key_averages() if e.key.startswith("kernel")]
    assert event.key == "kernel linear+relu"
    assert event.flops == 2 * 400 * 300 * 200 + 400 * 300


def test_after_the_profile_the_program_is_one_again():
    step, x = trained()
    with profiler.profile() as prof:
        step(x)
    count = len(prof.recorder.spans)
    step(x)
    assert len(prof.recorder.spans) == count


def equation(function, *arguments):
    """The last equation of the captured function that is no view."""
    graphs = []

    def keep(graph, examples):
        graphs.append(graph)
        return lambda *inputs: [torch.empty(v.spec.shape) for v in graph.outputs]

    torch.compile(function, backend=keep)(*arguments)
    return [e for e in graphs[0].equations if not e.is_view][-1]


@pytest.mark.parametrize(
    "function, shapes, flops, size",
    [
        (lambda x, y: x @ y, [(3, 4, 5), (5, 7)], 2 * 3 * 4 * 5 * 7, 4 * (60 + 35 + 84)),
        (lambda x, y: x + y, [(6, 7), (7,)], 42, 4 * (42 + 7 + 42)),
        (lambda x: x.sum(), [(6, 7)], 42, 4 * 43),
        (
            lambda x, w: nn.functional.conv2d(x, w, groups=2),
            [(2, 6, 9, 9), (4, 3, 3, 3)],
            2 * (2 * 4 * 7 * 7) * 27,
            4 * (972 + 108 + 392),
        ),
    ],
)
def test_work_of_an_equation(function, shapes, flops, size):
    found = equation(function, *[torch.ones(shape) for shape in shapes])
    assert operations(found) == flops
    assert nbytes((*found.inputs, *found.outputs)) == size
