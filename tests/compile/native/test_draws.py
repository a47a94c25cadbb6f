"""Random numbers inside of programs: no step of Python, and the stream of eager mode bit by bit."""

import threading

import pytest

import flambeau as torch
from flambeau.compile.native.calls import Call
from tests.compile.native.test_program import captured

F = torch.nn.functional
DRAWS = dict(
    dropout=lambda x: F.dropout(x, 0.3),
    dropout_twice=lambda x: F.dropout(F.dropout(x, 0.1), 0.5),
    dropout_wide=lambda x: F.dropout(x.double(), 0.7),
    dropout_narrow=lambda x: F.dropout(x.bfloat16(), 0.5).float(),
    dropout_transposed=lambda x: F.dropout(x.t(), 0.5),
    channels=lambda x: F.dropout2d(x.reshape(3, -1, 1, 1), 0.5),
    alpha=lambda x: F.alpha_dropout(x, 0.5, True),
    normal=lambda x: x + torch.randn(x.shape),
    normal_rest=lambda x: torch.randn(16 * 7 + 5) * 3,
    normal_written=lambda x: torch.empty(70).normal_(2, 3),
    uniform=lambda x: torch.rand_like(x),
    bernoulli=lambda x: torch.empty(x.shape).bernoulli_(0.2),
    noise=lambda x: x + torch.randn_like(x) * torch.rand(1) + F.dropout(x, 0.5),
)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("shape", [(3, 7), (61, 129)])
def test_bits_are_those_of_eager_mode(name, shape):
    function = DRAWS[name]
    x = torch.ones(shape)
    plan, _ = captured(function, x)
    assert all(isinstance(work, Call) for work in plan.program.work)
    compiled = torch.compile(function)
    for seed in (None, 1, None):  # a seed makes the generator start over with another state
        if seed is not None:
            torch.manual_seed(seed)
        state = torch.get_rng_state()
        wanted, then = function(x), torch.get_rng_state()
        torch.set_rng_state(state)
        found = compiled(x)
        assert torch.equal(found, wanted)
        assert torch.equal(torch.get_rng_state(), then)


def test_laws_without_a_kernel_and_own_generators_keep_their_place_in_the_stream():
    own = torch.Generator().manual_seed(3)

    def function(x):
        first = F.dropout(x, 0.5)
        second = x * torch.empty(x.shape).exponential_()
        third = torch.empty(x.shape).bernoulli_(0.5, generator=own)
        return first, second, third, F.dropout(x, 0.5)

    x = torch.ones(40)
    compiled = torch.compile(function)
    results = []
    for f in (function, compiled, compiled):
        torch.manual_seed(0)
        own.manual_seed(3)
        results.append(f(x))
    for found in results[1:]:
        for g, w in zip(found, results[0], strict=True):
            torch.testing.assert_close(g, w, rtol=1e-6, atol=0)


def test_a_program_that_fails_behind_a_draw_has_drawn_once():
    def function(x, index):
        return F.dropout(x, 0.5)[index]

    x, good, bad = torch.ones(100), torch.tensor([1, 2]), torch.tensor([1, 200])
    compiled = torch.compile(function)
    compiled(x, good)
    torch.manual_seed(0)
    F.dropout(x, 0.5)
    wanted = torch.get_rng_state()
    torch.manual_seed(0)
    with pytest.raises(IndexError):
        compiled(x, bad)
    assert torch.equal(torch.get_rng_state(), wanted)


def test_threads_share_the_stream():
    """Whoever comes first: all numbers together are those of one thread."""
    compiled = torch.compile(lambda x: F.dropout(x, 0.5))
    x = torch.ones(2048)
    compiled(x)
    torch.manual_seed(0)
    wanted = {F.dropout(x, 0.5).numpy().tobytes() for _ in range(24)}
    torch.manual_seed(0)
    found: set[bytes] = set()

    def work():
        for _ in range(6):
            found.add(compiled(x).numpy().tobytes())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == wanted
