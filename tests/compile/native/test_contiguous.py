"""Copies in front of equations whose kernels cannot walk their operands, and what they keep."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.compile.native.calls import Call
from tests.compile.native.test_program import captured


def test_products_read_copies_of_rows_that_nothing_can_walk():
    attention = torch.nn.MultiheadAttention(16, 4, batch_first=True)

    def step(x):
        out, _ = attention(x, x.flip(1), x, need_weights=False)
        out.square().sum().backward()
        return out

    x = torch.randn(3, 10, 16)
    plan, out = captured(step, x)
    assert all(isinstance(work, Call) for work in plan.program.work)
    np.testing.assert_allclose(out.detach(), attention(x, x.flip(1), x)[0].detach(), atol=1e-5)


@pytest.mark.parametrize("name", ["sort", "topk", "cumprod", "matmul", "linear", "median"])
def test_results_keep_their_layout_and_writes_before_them_happen_once(name):
    """An operand that is transposed, after a write that must not be repeated."""
    operations = dict(
        sort=lambda x: x.sort(-1)[0], topk=lambda x: x.topk(2, -1)[0],
        cumprod=lambda x: x.cumprod(-1), matmul=lambda x: x @ x.t(),
        linear=lambda x: torch.nn.functional.linear(x, x),
        median=lambda x: x.median(-1, keepdim=True)[0] + x,
    )  # fmt: skip

    def step(x):
        x.add_(1)
        y = operations[name](x) * 2
        x[:1, :2].copy_(y[:1, :2])
        return y

    rng = np.random.default_rng(0)
    for shape in [(2, 2), (5, 3), (70, 50)]:
        a = rng.normal(size=shape).astype(np.float32)

        def made(a=a):
            return torch.from_numpy(np.array(a.T, order="C")).t()

        compiled = torch.compile(step)
        for _ in range(2):
            x, z = made(), made()
            y, w = compiled(x), step(z)
            assert y.stride() == w.stride()
            torch.testing.assert_close(y, w)
            torch.testing.assert_close(x, z)
