"""One program serves every size: what library functions make of a size stays symbolic."""

import pytest

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn
from flambeau.compile import records
from flambeau.compile.sites import Site


def not_captured(site, *call):
    raise AssertionError(f"{site.code.co_qualname} runs as plain Python")


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


torch.manual_seed(0)
TABLE = drawn(40, 4)
SEEN = torch.tril(torch.ones(40, 40)).view(1, 1, 40, 40)
EMBED, LAYER = nn.Embedding(40, 4), nn.Linear(4, 4)
ATTEND = nn.MultiheadAttention(4, 2, batch_first=True)
MEMORY = nn.LSTM(4, 4, batch_first=True)
CLASSES = torch.tensor([0, 1, 3])

CASES = {
    "range": lambda a, n: a + torch.arange(n)[:, None],
    "range of floats": lambda a, n: a + torch.arange(0, n, dtype=torch.float32)[:, None],
    "range of steps": lambda a, n: torch.arange(0, 2 * n, 2)[:, None] + a,
    "range downwards": lambda a, n: torch.arange(n, 0, -1)[:, None] + a,
    "zeros": lambda a, n: torch.zeros(n, 4) + a,
    "identity": lambda a, n: torch.eye(n) @ a,
    "triangle": lambda a, n: torch.tril(torch.ones(n, n)) @ a,
    "part of a table": lambda a, n: a + TABLE[:n],
    "end of a table": lambda a, n: a + TABLE[-n:],
    "part of a mask": lambda a, n: (a @ a.T).masked_fill(SEEN[0, 0, :n, :n] == 0, -9).softmax(-1),
    "positions": lambda a, n: a + EMBED(torch.arange(n)),
    "encodings": lambda a, n: a + torch.sin(torch.arange(n).float()[:, None] / TABLE[0].exp()),
    "differences": lambda a, n: a[1:] - a[:-1],
    "half": lambda a, n: a[: n // 2],
    "last": lambda a, n: a[-1],
    "place": lambda a, n: a[n - 2] + TABLE[n],
    "written place": lambda a, n: TABLE.clone().index_fill(0, CLASSES, 0.0)[n],
    "view": lambda a, n: a.view(n * 2, 2).sum(0),
    "cat": lambda a, n: torch.cat([a, a], 0),
    "pad": lambda a, n: F.pad(a, (0, 0, 1, 0)),
    "attention": lambda a, n: ATTEND(a[None], a[None], a[None])[0],
    "causal": lambda a, n: F.scaled_dot_product_attention(*[a[None]] * 3, is_causal=True),
    "linear": lambda a, n: LAYER(a).sum() / n,
    "einsum": lambda a, n: torch.einsum("ij,kj->ik", a, a),
    "one hot": lambda a, n: F.one_hot(torch.zeros(n, dtype=torch.long), 4) * a,
    "long short-term memory": lambda a, n: MEMORY(a[None])[0],
    "view at the end": lambda a, n: LAYER(a).view(n * 2, -1).mT,
    "equal steps": lambda a, n: torch.linspace(0, 1, n)[:, None] * a,
    "pairs": lambda a, n: (a[:, None] - a[None]).pow(2).sum(-1),
}


@pytest.mark.parametrize("backend", ["eager", "native"])
@pytest.mark.parametrize("name", CASES)
def test_sizes_need_no_other_capture(name, backend, monkeypatch):
    monkeypatch.setattr(Site, "plain", not_captured)
    function, seen = CASES[name], []
    how = {"backend": backend, "mode": "sync", "fullgraph": True}
    compiled = torch.compile(lambda a: function(a, a.shape[0]), **how)
    records.collected.append(seen)
    for n in (4, 6, 5, 9, 7, 16):
        a = drawn(n, 4, seed=n).requires_grad_()
        got, want = compiled(a), function(a, n)
        torch.testing.assert_close(got, want)
        if want.requires_grad:
            grads = [torch.autograd.grad(t.float().sum(), a)[0] for t in (got, want)]
            torch.testing.assert_close(*grads)
    records.collected.remove(seen)
    assert [kind for kind, _, _ in seen] == ["capture"] * 2


def test_a_mask_in_a_graph_is_filled():
    def f(a, b):
        c, d, e = a.clone(), b.clone(), a.clone()
        c[a > 0] = 1.5
        d[b > 1] = 7.9
        e[a[:, 0] > 0] = a.max()
        c[c < -1] = torch.tensor([2])
        return c, d, e

    a, b = drawn(3, 4), torch.arange(5)
    compiled = torch.compile(f, backend="eager", fullgraph=True)
    assert repr(compiled(a, b)) == repr(f(a, b))
    with pytest.raises(IndexError):
        torch.compile(torch.Tensor.__setitem__, backend="eager")(a, b > 1, 0)


def test_a_position_that_changes_writes_where_it_should():
    cache = torch.zeros(1, 8, 4)

    def f(a, k):
        cache[:, k] = a
        return (cache[:, : k + 1] * a).sum(1)

    compiled = torch.compile(f, backend="eager", fullgraph=True)
    found = [compiled(drawn(1, 4, seed=k), k).tolist() for k in range(8)]
    kept, cache = cache, torch.zeros(1, 8, 4)
    assert found == [f(drawn(1, 4, seed=k), k).tolist() for k in range(8)]
    assert kept.tolist() == cache.tolist()
