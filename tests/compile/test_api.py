"""The ways of calling `compile`, and what belongs to it."""

import copy
import gc
import pickle
import threading
import weakref

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.compile import backends, config, records
from flambeau.compile.verification import VerificationError


def captures(compiled, *calls):
    """The programs that the calls make."""
    seen = []
    records.collected.append(seen)
    try:
        for args in calls:
            compiled(*args)
    finally:
        records.collected.remove(seen)
    return [what for kind, _, what in seen if kind == "capture"]


def test_as_a_decorator_with_and_without_arguments():
    @torch.compile
    def f(x):
        "Doubles."
        return x * 2

    @torch.compile(fullgraph=True, dynamic=False, backend="eager", mode="default")
    def g(x):
        return x * 3

    assert f(torch.ones(2)).tolist() == [2, 2] and g(torch.ones(2)).tolist() == [3, 3]
    assert f.__name__ == "f" and f.__doc__ == "Doubles."


def test_disable_and_unknown_choices():
    def f(x):
        return x

    assert torch.compile(f, disable=True) is f
    with pytest.raises(ValueError, match="mode must be one of"):
        torch.compile(f, mode="fastest")
    with pytest.raises(ValueError, match="backend must be"):
        torch.compile(f, backend="nothing")


def test_methods_and_callable_objects():
    class Scaler:
        def __init__(self, by):
            self.by = by

        @torch.compile
        def scale(self, x):
            return x * self.by

        def __call__(self, x):
            return x + self.by

    one, two = Scaler(2), Scaler(3)
    assert one.scale(torch.ones(1)).item() == 2 and two.scale(torch.ones(1)).item() == 3
    assert torch.compile(one)(torch.ones(1)).item() == 3
    assert torch.compile(one.__call__)(torch.ones(1)).item() == 3


def test_module_wrapper_behaves_as_the_module():
    torch.manual_seed(0)
    original = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    module = torch.compile(original)
    x = torch.ones(3, 2)
    module.eval()
    assert not original.training and not original[1].training
    assert torch.equal(module(x), original(x))
    assert set(module.state_dict()) == {"_orig_mod.0.weight", "_orig_mod.0.bias"}
    assert [p for p in module.parameters()][0] is original[0].weight
    assert isinstance(module, nn.Module) and len(module) == 2
    module(x).sum().backward()
    assert original[0].weight.grad is not None
    clone = copy.deepcopy(module)
    assert torch.equal(clone(x), original(x)) and clone[0].weight is not original[0].weight


def test_a_compiled_module_can_be_pickled():
    module = torch.compile(nn.Linear(2, 2), backend="eager")
    again = pickle.loads(pickle.dumps(module))
    x = torch.ones(1, 2)
    assert torch.equal(module(x), again(x))


def test_fullgraph_says_where_and_why():
    @torch.compile(fullgraph=True)
    def f(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(RuntimeError, match="control flow depends on the value") as caught:
        f(torch.ones(2))
    assert "test_api.py" in str(caught.value)


def test_disable_runs_as_plain_python():
    seen = []

    @torch.compiler.disable
    def outside(x):
        seen.append(torch.compiler.is_compiling())
        return x + 1

    @torch.compile
    def f(x):
        inside = torch.compiler.is_compiling()
        return outside(x * 2), inside

    value, inside = f(torch.ones(1))
    assert value.item() == 3 and inside is True and seen == [False]
    assert torch.compiler.is_compiling() is False


def test_graph_break_on_request():
    def f(x):
        y = x * 2
        torch._dynamo.graph_break()
        return y + 1

    compiled = torch.compile(f)
    found = captures(compiled, (torch.ones(1),))
    assert len(found) == 2 and found[0].broken is not None


def test_a_custom_backend_gets_the_graph_and_examples():
    graphs = []

    def backend(graph, examples):
        graphs.append((str(graph), [tuple(e.shape) for e in examples]))
        return backends.BACKENDS["eager"](graph, examples)

    compiled = torch.compile(lambda x: x.relu() + 1, backend=backend)
    assert compiled(torch.tensor([-1.0, 1.0])).tolist() == [1, 2]
    ((text, shapes),) = graphs
    assert "relu(%0)" in text and shapes == [(2,)]


def test_reset_forgets_programs():
    compiled = torch.compile(lambda x: x + 1)
    assert len(captures(compiled, (torch.ones(1),), (torch.ones(1),))) == 1
    torch._dynamo.reset()
    assert len(captures(compiled, (torch.ones(1),))) == 1


def test_the_limit_warns_and_names_the_cause(monkeypatch):
    monkeypatch.setattr(config, "cache_size_limit", 2)

    def f(x, name):
        return x + len(name)

    compiled = torch.compile(f)
    compiled(torch.ones(1), "a")
    compiled(torch.ones(1), "ab")
    with pytest.warns(records.CompileWarning, match="name: == 'ab', now 'abc'"):
        assert compiled(torch.ones(1), "abc").item() == 4
    assert compiled(torch.ones(1), "abcd").item() == 5


def test_explain_recompile_gives_old_and_new():
    def f(x, k):
        return x * k

    compiled = torch.compile(f)
    x = torch.ones(2)
    compiled(x, "a" and 2)
    ((path, before, now),) = compiled.site.explain_recompile(f, (x, 3))
    assert (path, before, now) == ("k", "== 2", "3")


def test_explain_lists_graphs_and_breaks():
    def f(x):
        y = x * 2
        print("between", file=None)
        if y.sum() > 0:
            y = y + 1
        return y

    report = torch._dynamo.explain(f)(torch.ones(2))
    assert report.graph_count == 2 and report.graph_break_count == 1
    assert "test_api.py" in report.break_reasons[0].where
    assert "torch.where" in report.break_reasons[0].rewrite
    assert "Graph Break Count: 1" in str(report)


def test_verify_names_the_first_wrong_operation():
    def wrong(graph, examples):
        run = backends.BACKENDS["eager"](graph, examples)
        spoilt = any(e.name == "relu" for e in graph.equations)
        return lambda *inputs: [o + 1 if spoilt else o for o in run(*inputs)]

    def f(x):
        return (x * 2).relu() - 1

    x = torch.tensor([1.0, -1.0])
    assert torch.compile(f, verify=True)(x).tolist() == [1, -1]
    with pytest.raises(VerificationError, match=r"operation=.*relu"):
        torch.compile(f, verify=True, backend=wrong)(x)


def test_changing_numbers_and_sizes_do_not_recompile():
    def f(x, step, rate):
        return x * rate / (1 - 0.9**step), x.shape[0] * 2

    compiled = torch.compile(f)
    calls = [(torch.ones(n, 3), n, 0.1 * n) for n in range(2, 9)]
    found = captures(compiled, *calls)
    assert len(found) == 2
    for args in calls:
        value, size = compiled(*args)
        assert torch.equal(value, f(*args)[0]) and size == 2 * args[0].shape[0]


def test_dynamic_true_is_symbolic_from_the_start():
    compiled = torch.compile(lambda x: (x @ x.t()).sum(0), dynamic=True)
    calls = [(torch.ones(n, n + 1),) for n in range(2, 7)]
    assert len(captures(compiled, *calls)) == 1
    assert compiled(*calls[3]).tolist() == [30.0] * 5


def test_a_size_that_python_reads_is_never_wrong():
    def f(x):
        return [x[k] * k for k in range(x.shape[0])], list("abcdefgh")[x.shape[0]]

    compiled = torch.compile(f, dynamic=True)
    for n in (2, 3, 5, 1, 4):
        x = torch.ones(n)
        values, letter = compiled(x)
        assert [v.item() for v in values] == list(range(n)) and letter == "abcdefgh"[n]


def test_generators_and_coroutines_run_as_they_are():
    @torch.compile
    def numbers(x):
        yield x
        yield x * 2

    @torch.compile
    async def later(x):
        return x + 1

    assert [v.item() for v in numbers(torch.ones(()))] == [1, 2]
    with pytest.raises(StopIteration) as done:
        later(torch.ones(())).send(None)
    assert done.value.value.item() == 2


def test_a_compiled_function_inside_of_another():
    inner = torch.compile(lambda x: x * 2)
    module = torch.compile(nn.ReLU())

    def f(x):
        return module(inner(x)) + 1

    compiled = torch.compile(f)
    (found,) = captures(compiled, (torch.tensor([-1.0, 1.0]),))
    assert found.broken is None and compiled(torch.tensor([-1.0, 1.0])).tolist() == [1, 3]


def test_replaced_methods_are_noticed():
    class Scale:
        def by(self, x):
            return x * 2

    scale = Scale()
    compiled = torch.compile(lambda x: scale.by(x))
    assert compiled(torch.ones(1)).item() == 2
    Scale.by = lambda self, x: x * 3
    assert compiled(torch.ones(1)).item() == 3
    scale.by = lambda x: x * 4
    assert compiled(torch.ones(1)).item() == 4


def test_threads_share_a_compiled_function():
    compiled = torch.compile(lambda x, k: (x * k, k + 1))
    results = [[] for _ in range(4)]

    def work(k):
        for n in range(1, 12):
            value, number = compiled(torch.ones(n % 4 + 1), k)
            results[k].append((value.tolist(), number))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, found in enumerate(results):
        assert found == [([float(k)] * (n % 4 + 1), k + 1) for n in range(1, 12)]


def test_programs_do_not_keep_inputs_alive():
    compiled = torch.compile(lambda x: x * x.shape[0], dynamic=True)
    x = torch.ones(3, 2)
    alive = weakref.ref(x)
    compiled(x)
    del x
    gc.collect()
    assert alive() is None


def test_aliasing_inputs_are_noticed():
    def f(a, b):
        a.add_(1)
        return b * 2

    compiled = torch.compile(f)
    one, two = torch.zeros(2), torch.zeros(2)
    assert compiled(one, two).tolist() == [0, 0]
    assert compiled(one, one).tolist() == [4, 4]
    base = torch.zeros(4)
    assert compiled(base[:2], base[1:3]).tolist() == [2, 0]


def test_grad_mode_and_autocast_are_guarded():
    w = torch.ones(2, requires_grad=True)
    compiled = torch.compile(lambda x: x * w)
    assert compiled(torch.ones(2)).requires_grad
    with torch.no_grad():
        assert not compiled(torch.ones(2)).requires_grad
    assert compiled(torch.ones(2)).requires_grad
