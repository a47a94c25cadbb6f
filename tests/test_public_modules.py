"""Small public modules that answer for themselves: profiler, library, multiprocessing, threads."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import library, multiprocessing, profiler


def test_a_profile_counts_functions_and_named_blocks():
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU]) as prof:
        with profiler.record_function("block"):
            torch.ones(3) + 1
        torch.exp(torch.ones(2)).exp()
    found = {event.key: event.count for event in prof.key_averages()}
    assert found["exp"] == 2 and found["add"] == 1 and found["block"] == 1
    assert "exp" in prof.key_averages().table(sort_by="cpu_time_total", row_limit=5)


def test_a_schedule_records_the_steps_it_names():
    seen = []
    plan = profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    ready = lambda prof: seen.append((prof.step_num, len(prof.key_averages())))
    with profiler.profile(schedule=plan, on_trace_ready=ready) as prof:
        for _ in range(6):
            torch.ones(2).neg()
            prof.step()
    assert [step for step, _ in seen] == [3]
    assert [plan(n).name for n in range(5)] == [
        "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE"]  # fmt: skip


def test_a_custom_op_has_the_gradient_it_registers():
    @library.custom_op("tests::cube", mutates_args=())
    def cube(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.power(x.detach().numpy(), 3))

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2

    cube.register_autograd(backward, setup_context=setup)
    cube.register_fake(torch.empty_like)
    x = torch.tensor([2.0], requires_grad=True)
    torch.ops.tests.cube(x).backward()
    assert x.grad.item() == 12.0
    assert cube(torch.empty(3, device="meta")).shape == (3,)
    with pytest.raises(ValueError, match="namespace::name"):
        library.custom_op("cube", lambda x: x)


def add_rank(rank, shared):
    shared[rank] += rank + 1


def fail(rank):
    raise KeyError(f"rank {rank}")


def test_processes_share_memory_and_report_errors():
    counts = torch.zeros(2).share_memory_()
    multiprocessing.start_processes(add_rank, (counts,), nprocs=2, start_method="fork")
    assert counts.tolist() == [1.0, 2.0]
    with pytest.raises(multiprocessing.ProcessRaisedException, match="KeyError: 'rank 0'"):
        multiprocessing.start_processes(fail, nprocs=1, start_method="fork")


def test_processes_that_have_ended_are_joined_at_once():
    counts = torch.zeros(2).share_memory_()
    started = multiprocessing.start_processes(
        add_rank, (counts,), nprocs=2, join=False, start_method="fork")
    for process in started.processes:
        process.join()
    assert started.join() and started.join()
    assert counts.tolist() == [1.0, 2.0]


def test_thread_counts_are_set_and_read():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        assert torch.get_num_threads() == 1
        assert (torch.ones(64, 64) @ torch.ones(64, 64))[0, 0] == 64
    finally:
        torch.set_num_threads(before)


def test_settings_are_kept_and_put_back():
    cudnn = torch.backends.cudnn
    with cudnn.flags(enabled=False, benchmark=True):
        assert not cudnn.enabled and cudnn.benchmark
    assert cudnn.enabled and not cudnn.benchmark
    try:
        torch.set_float32_matmul_precision("high")
        assert torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = False
        assert torch.get_float32_matmul_precision() == "highest"
        torch.set_deterministic_debug_mode("warn")
        assert torch.is_deterministic_algorithms_warn_only_enabled()
    finally:
        torch.set_float32_matmul_precision("highest")
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("call", [
    lambda: torch.hub.load("a/b", "c"),
    lambda: torch.fx.symbolic_trace(torch.nn.Linear(1, 1)),
    lambda: torch.onnx.export(None, None, None),
    lambda: torch.export.export(None, ()),
    lambda: torch.distributed.init_process_group("gloo"),
    lambda: torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1)),
    lambda: torch.utils.tensorboard.SummaryWriter(),
    lambda: torch.quantization.QuantStub(),
])  # fmt: skip
def test_what_is_not_offered_says_what_to_do(call):
    with pytest.raises(RuntimeError, match=r": .*\. [A-Z]"):
        call()
