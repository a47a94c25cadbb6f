"""Function transforms give PyTorch's values, alone and nested."""

import numpy as np
import pytest

import flambeau as fb

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node:UserWarning"),
]


def make(library, *shape, seed=0, dtype="float64"):
    array = np.random.default_rng(seed).standard_normal(shape)
    return library.from_numpy(array).to(getattr(library, dtype))


def arrays(tree):
    if isinstance(tree, dict):
        return {k: arrays(v) for k, v in tree.items()}
    if isinstance(tree, list | tuple):
        return [arrays(v) for v in tree]
    return tree.detach().numpy() if hasattr(tree, "detach") else tree


def assert_same(mine, theirs, path=""):
    if isinstance(theirs, dict):
        assert list(mine) == list(theirs)
        for key in theirs:
            assert_same(mine[key], theirs[key], f"{path}.{key}")
    elif isinstance(theirs, list):
        assert len(mine) == len(theirs), path
        for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            assert_same(a, b, f"{path}[{i}]")
    else:
        assert np.shape(mine) == np.shape(theirs), path
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11, err_msg=path)
        if isinstance(theirs, np.ndarray):
            assert mine.dtype == theirs.dtype, path


def check(case):
    """`case(library, library.func)` gives the same tree of arrays in both."""
    assert_same(arrays(case(fb, fb.func)), arrays(case(torch, torch.func)))


def net(p, x):
    return ((x @ p["w"] + p["b"]).tanh() @ p["v"]).sum()


def params(lib):
    return {"w": make(lib, 3, 4), "b": make(lib, 4, seed=1), "v": make(lib, 4, seed=2)}


GRADS = {
    "scalar": lambda t, f: f.grad(lambda x: (x**3).sum())(make(t, 4)),
    "second argument": lambda t, f: f.grad(lambda a, b: (a * b).sum(), argnums=1)(
        make(t, 3), make(t, 3, seed=1)
    ),
    "both arguments": lambda t, f: f.grad(lambda a, b: (a * b**2).sum(), argnums=(0, 1))(
        make(t, 3), make(t, 3, seed=1)
    ),
    "negative argnum": lambda t, f: f.grad(lambda a, b: (a * b**2).sum(), argnums=-1)(
        make(t, 3), make(t, 3, seed=1)
    ),
    "tree": lambda t, f: f.grad(net)(params(t), make(t, 5, 3, seed=3)),
    "aux": lambda t, f: f.grad(lambda x: ((x**2).sum(), x * 2), has_aux=True)(make(t, 3)),
    "value": lambda t, f: f.grad_and_value(lambda x: (x**2).sum())(make(t, 3)),
    "value and aux": lambda t, f: f.grad_and_value(lambda x: (x.sin().sum(), x), has_aux=True)(
        make(t, 3)
    ),
    "no influence": lambda t, f: f.grad(lambda a, b: b.sum())(make(t, 3), make(t, 2)),
    "third": lambda t, f: f.grad(f.grad(f.grad(lambda x: x**5)))(t.tensor(1.5)),
    "through a closure": lambda t, f: f.grad(lambda y: f.grad(lambda x: x * y**2)(y) * y)(
        t.tensor(1.5)
    ),
    "keyword": lambda t, f: f.grad(lambda x, k=1: (k * x**2).sum())(make(t, 3), k=3),
    "in-place on a clone": lambda t, f: f.grad(lambda x: x.clone().mul_(x).sum())(make(t, 3)),
    "vjp": lambda t, f: f.vjp(lambda x: (x.sin(), x.cos()), make(t, 3))[1](
        (make(t, 3, seed=1), make(t, 3, seed=2))
    ),
    "vjp of two": lambda t, f: f.vjp(lambda x, y: x * y, make(t, 3), make(t, 3, seed=4))[1](
        make(t, 3, seed=1)
    ),
    "vjp twice": lambda t, f: [
        pull(make(t, 3, seed=s)) for pull in [f.vjp(lambda x: x**2, make(t, 3))[1]] for s in (1, 2)
    ],
    "vjp aux": lambda t, f: f.vjp(lambda x: (x**2, x + 1), make(t, 3), has_aux=True)[::2],
    "jvp": lambda t, f: f.jvp(lambda x: x.sin() * x, (make(t, 3),), (make(t, 3, seed=1),)),
    "jvp of two": lambda t, f: f.jvp(
        lambda x, y: (x * y, x.exp()),
        (make(t, 3), make(t, 3, seed=2)),
        (make(t, 3, seed=1), make(t, 3, seed=3)),
    ),
    "jvp aux": lambda t, f: f.jvp(
        lambda x: (x**2, x + 1), (make(t, 3),), (make(t, 3, seed=1),), has_aux=True
    ),
    "jvp no influence": lambda t, f: f.jvp(
        lambda x: t.ones(2), (make(t, 3),), (make(t, 3, seed=1),)
    ),
    "jvp of grad": lambda t, f: f.jvp(
        f.grad(lambda x: (x**3).sum()), (make(t, 3),), (make(t, 3, seed=1),)
    ),
    "grad of jvp": lambda t, f: f.grad(
        lambda x: f.jvp(lambda y: y**3, (x,), (make(t, 3, seed=1),))[1].sum()
    )(make(t, 3)),
    "linearize": lambda t, f: f.linearize(lambda x: x.sin(), make(t, 3))[1](make(t, 3, seed=1)),
    "jacrev": lambda t, f: f.jacrev(lambda x: (x[:2] * x[1:]).sin())(make(t, 3)),
    "jacrev matrix": lambda t, f: f.jacrev(lambda x: x @ x.T)(make(t, 2, 3)),
    "jacrev two": lambda t, f: f.jacrev(lambda x, y: (x * y, y.sum()), argnums=(0, 1))(
        make(t, 3), make(t, 3, seed=1)
    ),
    "jacrev dict": lambda t, f: f.jacrev(lambda d: {"s": d["a"] * d["b"].sum()})(
        {"a": make(t, 3), "b": make(t, 2, seed=1)}
    ),
    "jacrev chunks": lambda t, f: f.jacrev(lambda x: x**2, chunk_size=2)(make(t, 5)),
    "jacrev aux": lambda t, f: f.jacrev(lambda x: (x**2, x.sum()), has_aux=True)(make(t, 3)),
    "jacfwd": lambda t, f: f.jacfwd(lambda x: (x[:2] * x[1:]).sin())(make(t, 3)),
    "jacfwd two": lambda t, f: f.jacfwd(lambda x, y: (x * y, y.sum()), argnums=(0, 1))(
        make(t, 3), make(t, 3, seed=1)
    ),
    "jacfwd aux": lambda t, f: f.jacfwd(lambda x: (x**2, x.sum()), has_aux=True)(make(t, 3)),
    "hessian": lambda t, f: f.hessian(lambda x: (x**3).sum() + x.prod())(make(t, 3)),
    "hessian two": lambda t, f: f.hessian(lambda x, y: (x**2 * y).sum(), argnums=(0, 1))(
        make(t, 2), make(t, 2, seed=1)
    ),
    "jacrev of jacrev": lambda t, f: f.jacrev(f.jacrev(lambda x: (x**3).sum()))(make(t, 3)),
    "jacfwd of jacfwd": lambda t, f: f.jacfwd(f.jacfwd(lambda x: (x**3).sum()))(make(t, 3)),
}


@pytest.mark.parametrize("name", GRADS)
def test_derivatives(name):
    check(GRADS[name])


def mapped(function, *shapes, **options):
    def case(lib, f):
        args = [make(lib, *s, seed=i) if s is not None else 2.0 for i, s in enumerate(shapes)]
        return f.vmap(lambda *xs: function(lib, *xs), **options)(*args)

    return case


F = lambda lib: lib.nn.functional


def indices(lib, *shape, high=3):
    return lib.from_numpy(np.random.default_rng(7).integers(0, high, shape))


VMAPS = {
    "unary": mapped(lambda t, x: x.sin() + 1, (3, 4)),
    "binary": mapped(lambda t, x, y: x * y, (3, 4), (3, 4)),
    "unmapped": mapped(lambda t, x, y: x * y, (3, 4), (4,), in_dims=(0, None)),
    "ranks": mapped(lambda t, x, y: x * y, (3, 2, 4), (3, 4)),
    "ranks with unmapped": mapped(lambda t, x, y: x + y, (3,), (2, 4), in_dims=(0, None)),
    "in_dims": mapped(lambda t, x, y: x @ y, (4, 3), (4, 3), in_dims=(1, 1)),
    "negative in_dims": mapped(lambda t, x: x.sum(), (4, 3), in_dims=-1),
    "out_dims": mapped(lambda t, x: (x, x.sum()), (3, 4), out_dims=(1, 0)),
    "constant result": mapped(lambda t, x: t.ones(2), (3, 4)),
    "out_dim None": mapped(lambda t, x: (x, t.ones(2)), (3, 4), out_dims=(0, None)),
    "nested": lambda t, f: f.vmap(f.vmap(lambda x, y: x * y, (0, None)), (None, 0))(
        make(t, 3), make(t, 4, seed=1)
    ),
    "nested in both": lambda t, f: f.vmap(f.vmap(lambda x, y: (x * y).sum()))(
        make(t, 2, 3, 4), make(t, 2, 3, 4, seed=1)
    ),
    "outer inner dims": lambda t, f: f.vmap(f.vmap(lambda x, y: x - y, (0, None)), (1, 0))(
        make(t, 3, 2, 4), make(t, 2, 4, seed=1)
    ),
    "tree": lambda t, f: f.vmap(lambda d, k: {"a": d["x"] + k, "b": d["x"] * 2})(
        {"x": make(t, 3, 2)}, make(t, 3)
    ),
    "tree in_dims": lambda t, f: f.vmap(lambda d: d["x"] * d["y"], in_dims=({"x": 0, "y": None},))(
        {"x": make(t, 3, 2), "y": make(t, 2)}
    ),
    "keyword": lambda t, f: f.vmap(lambda x, y: x + y)(make(t, 3), y=make(t, 3, 2)),
    "number argument": mapped(lambda t, x, k: x * k, (3, 4), None, in_dims=(0, None)),
    "chunks": mapped(lambda t, x: (x**2).sum(), (7, 4), chunk_size=3),
    "chunks with out_dims": mapped(lambda t, x: x**2, (7, 4), chunk_size=3, out_dims=1),
    "promotion": lambda t, f: f.vmap(lambda x, y: x * y)(
        make(t, 3), make(t, 3, 2, dtype="float32")
    ),
    "comparison": mapped(lambda t, x: t.where(x > 0, x, -x), (3, 4)),
    "masked_fill": mapped(lambda t, x: x.masked_fill(x > 0, 7.0), (3, 4)),
    "clamp": mapped(lambda t, x: x.clamp(-0.5, 0.5), (3, 4)),
    "reductions": mapped(
        lambda t, x: (x.sum(0), x.mean(), x.amax(1), x.std(0), x.prod(), x.logsumexp(0)), (3, 4, 2)
    ),
    "max": mapped(lambda t, x: (*x.max(0), x.max(), x.argmax(), x.argmin(1)), (3, 4, 2)),
    "norms": mapped(lambda t, x: (x.norm(), t.linalg.vector_norm(x, 3, 0)), (3, 4, 2)),
    "scans": mapped(lambda t, x: (x.cumsum(0), x.cumprod(-1)), (3, 4, 2)),
    "views": mapped(
        lambda t, x: (x.T, x.reshape(-1), x[1], x[:, 1:], x.unsqueeze(0), x.flatten(), x[..., -1]),
        (3, 4, 2),
    ),
    "expand": mapped(lambda t, x: (x.expand(2, 4), x[None].expand(3, -1)), (3, 4)),
    "movedim": mapped(lambda t, x: x.movedim(0, -1) + 1, (3, 4, 2)),
    "split": mapped(lambda t, x: [*x.split(2), *x.unbind(1), *x.chunk(2)], (3, 4, 2)),
    "cat": mapped(
        lambda t, x, y: (t.cat([x, y]), t.stack([x, y])), (3, 4), (4,), in_dims=(0, None)
    ),
    "diagonal": mapped(lambda t, x: (x.diagonal(), t.diag(x[0]), x.tril()), (3, 4, 4)),
    "matmul": mapped(lambda t, x, y: x @ y, (3, 4, 2), (3, 2, 5)),
    "matmul one": mapped(lambda t, x, y: x @ y, (3, 4, 2), (2, 5), in_dims=(0, None)),
    "matmul other": mapped(lambda t, x, y: x @ y, (4, 2), (3, 2, 5), in_dims=(None, 0)),
    "matvec": mapped(lambda t, x, y: x @ y, (3, 4, 2), (3, 2)),
    "dot": mapped(lambda t, x, y: x @ y, (3, 4), (3, 4)),
    "batched matmul": mapped(lambda t, x, y: x @ y, (3, 2, 4, 2), (2, 5), in_dims=(0, None)),
    "einsum": mapped(lambda t, x, y: t.einsum("ij,jk->ik", x, y), (3, 4, 2), (3, 2, 5)),
    "linear": mapped(
        lambda t, x, w, b: F(t).linear(x, w, b), (3, 4), (5, 4), (5,), in_dims=(0, None, None)
    ),
    "linear per slice": mapped(
        lambda t, x, w, b: F(t).linear(x, w, b), (3, 2, 4), (3, 5, 4), (3, 5)
    ),
    "linear weights only": mapped(
        lambda t, x, w: F(t).linear(x, w), (2, 4), (3, 5, 4), in_dims=(None, 0)
    ),
    "conv": mapped(
        lambda t, x, w, b: F(t).conv2d(x, w, b, padding=1),
        (3, 2, 4, 6, 6), (5, 4, 3, 3), (5,), in_dims=(0, None, None),
    ),
    "conv per slice": mapped(
        lambda t, x, w, b: F(t).conv2d(x, w, b, stride=2, groups=2),
        (3, 2, 4, 6, 6), (3, 6, 2, 3, 3), (3, 6),
    ),
    "conv weights only": mapped(
        lambda t, x, w: F(t).conv1d(x, w), (2, 4, 6), (3, 5, 4, 3), in_dims=(None, 0)
    ),
    "conv_transpose": mapped(
        lambda t, x, w: F(t).conv_transpose2d(x, w, stride=2), (3, 2, 4, 3, 3), (3, 4, 2, 3, 3)
    ),
    "pooling": mapped(
        lambda t, x: (F(t).max_pool2d(x, 2), F(t).avg_pool2d(x, 2)), (3, 2, 4, 6, 6)
    ),
    "softmax": mapped(lambda t, x: (x.softmax(0), x.log_softmax(-1)), (3, 4, 2)),
    "layer_norm": mapped(
        lambda t, x, w: F(t).layer_norm(x, (4,), w), (3, 2, 4), (4,), in_dims=(0, None)
    ),
    "layer_norm per slice": mapped(lambda t, x, w: F(t).layer_norm(x, (4,), w), (3, 2, 4), (3, 4)),
    "batch_norm": mapped(
        lambda t, x: F(t).batch_norm(x, None, None, training=True), (3, 5, 4, 2)
    ),
    "activations": mapped(lambda t, x: (F(t).relu(x), F(t).gelu(x), t.sigmoid(x)), (3, 4)),
    "losses": lambda t, f: f.vmap(lambda x, y: F(t).cross_entropy(x, y))(
        make(t, 3, 5, 4), indices(t, 3, 5, high=4)
    ),
    "mse": mapped(lambda t, x, y: F(t).mse_loss(x, y), (3, 4), (3, 4)),
    "embedding": lambda t, f: f.vmap(lambda i, w: F(t).embedding(i, w), (0, None))(
        indices(t, 4, 5), make(t, 3, 2)
    ),
    "embedding per slice": lambda t, f: f.vmap(lambda i, w: F(t).embedding(i, w))(
        indices(t, 4, 5), make(t, 4, 3, 2)
    ),
    "index": lambda t, f: f.vmap(lambda x, i: (x[i], x[:, i], x[i, i]))(
        make(t, 4, 3, 3), indices(t, 4, 5)
    ),
    "index by shared": lambda t, f: f.vmap(lambda x, i: (x[i], x[:, i]), (0, None))(
        make(t, 4, 3, 3), indices(t, 5)
    ),
    "index of shared": lambda t, f: f.vmap(lambda x, i: (x[i], x[:, i], x[i, :, i]), (None, 0))(
        make(t, 3, 4, 3), indices(t, 4, 5)
    ),
    "index apart": lambda t, f: f.vmap(lambda x, i: x[i, :, i])(
        make(t, 4, 3, 2, 3), indices(t, 4, 5)
    ),
    "gather": lambda t, f: f.vmap(lambda x, i: x.gather(0, i))(make(t, 4, 3), indices(t, 4, 5)),
    "index_select": lambda t, f: f.vmap(lambda x, i: x.index_select(0, i))(
        make(t, 4, 3, 2), indices(t, 4, 5)
    ),
    "in-place": mapped(lambda t, x: x.clone().add_(1).mul_(x), (3, 4)),
    "set item": lambda t, f: f.vmap(lambda x: _set(x.clone()))(make(t, 3, 4)),
    "sort": mapped(lambda t, x: (*x.sort(), *x.topk(2)), (3, 4)),
    "zeros_like": mapped(lambda t, x: t.zeros_like(x) + x.new_ones(4), (3, 4)),
    "pow": mapped(lambda t, x, y: x.abs() ** y, (3,), (3, 2)),
    "detach": mapped(lambda t, x: x.detach() * 2, (3, 4)),
    "to": mapped(lambda t, x: x.to(t.float32), (3, 4)),
    "flip": mapped(lambda t, x: x.flip(0), (3, 4)),
    "roll": mapped(lambda t, x: x.roll(1, 0), (3, 4)),
    "outer": mapped(lambda t, x, y: t.outer(x, y), (3, 4), (3, 2)),
    "no_grad": mapped(lambda t, x: _without_grad(t, x), (3, 4)),
    "attention": mapped(
        lambda t, q, k, v: F(t).scaled_dot_product_attention(q, k, v), (3, 2, 5, 4), (3, 2, 5, 4),
        (3, 2, 5, 4),
    ),
}  # fmt: skip


def _set(x):
    x[1] = 5.0
    x[2:] = x[:2]
    return x


def _without_grad(lib, x):
    with lib.no_grad():
        return x * 2


@pytest.mark.parametrize("name", VMAPS)
def test_vmap(name):
    check(VMAPS[name])


BOTH = {
    "gradients per sample": lambda t, f: f.vmap(f.grad(net), in_dims=(None, 0))(
        params(t), make(t, 6, 3, seed=3)
    ),
    "values and gradients per sample": lambda t, f: f.vmap(
        f.grad_and_value(net), in_dims=(None, 0)
    )(params(t), make(t, 6, 3, seed=3)),
    "gradients of an ensemble": lambda t, f: f.vmap(f.grad(net), in_dims=(0, None))(
        {k: t.stack([v, v * 2]) for k, v in params(t).items()}, make(t, 6, 3, seed=3)
    ),
    "grad of vmap": lambda t, f: f.grad(lambda x: f.vmap(lambda y: (y**3).sum())(x).sum())(
        make(t, 3, 4)
    ),
    "jacrev in vmap": lambda t, f: f.vmap(f.jacrev(lambda x: x**2))(make(t, 3, 4)),
    "jacfwd in vmap": lambda t, f: f.vmap(f.jacfwd(lambda x: x.sin() * x.sum()))(make(t, 3, 4)),
    "hessian in vmap": lambda t, f: f.vmap(f.hessian(lambda x: (x**3).sum()))(make(t, 3, 4)),
    "two levels": lambda t, f: f.vmap(
        f.vmap(f.grad(lambda x, y: (x * y).sin().sum()), (0, None)), (None, 0)
    )(make(t, 3, 2), make(t, 4, 2, seed=1)),
    "second derivatives per sample": lambda t, f: f.vmap(f.grad(f.grad(lambda x: x**4)))(
        make(t, 5)
    ),
    "vjp in vmap": lambda t, f: f.vmap(lambda x, v: f.vjp(lambda y: y**3, x)[1](v)[0])(
        make(t, 3, 4), make(t, 3, 4, seed=1)
    ),
    "jvp in vmap": lambda t, f: f.vmap(lambda x, v: f.jvp(lambda y: y**3, (x,), (v,))[1])(
        make(t, 3, 4), make(t, 3, 4, seed=1)
    ),
    "vmap of jvp over tangents": lambda t, f: f.vmap(
        lambda v: f.jvp(lambda y: y**3, (make(t, 4),), (v,))[1]
    )(make(t, 3, 4, seed=1)),
    "convolution per sample": lambda t, f: f.vmap(
        f.grad(lambda w, x: F(t).conv2d(x[None], w, padding=1).relu().pow(2).sum()), (None, 0)
    )(make(t, 4, 2, 3, 3), make(t, 3, 2, 5, 5, seed=1)),
    "classifier per sample": lambda t, f: f.vmap(
        f.grad(lambda w, x, y: F(t).cross_entropy((x @ w)[None], y[None])), (None, 0, 0)
    )(make(t, 4, 3), make(t, 6, 4, seed=1), indices(t, 6)),
    "layer norm per sample": lambda t, f: f.vmap(
        f.grad(lambda w, x: (F(t).layer_norm(x, (4,), w) ** 3).sum()), (None, 0)
    )(make(t, 4), make(t, 3, 2, 4, seed=1)),
    "softmax per sample": lambda t, f: f.vmap(f.grad(lambda x: (x.softmax(-1) ** 2).sum()))(
        make(t, 3, 4)
    ),
    "embedding per sample": lambda t, f: f.vmap(
        f.grad(lambda w, i: (F(t).embedding(i, w) ** 2).sum()), (None, 0)
    )(make(t, 3, 2), indices(t, 4, 5)),
    "indexing per sample": lambda t, f: f.vmap(
        f.grad(lambda w, i: (w[i] ** 2).sum() + w[0].sum()), (None, 0)
    )(make(t, 3, 2), indices(t, 4, 5)),
    "pooling per sample": lambda t, f: f.vmap(
        f.grad(lambda x: (F(t).max_pool2d(x, 2) ** 2).sum() + F(t).avg_pool2d(x, 2).sum())
    )(make(t, 3, 1, 2, 4, 4)),
}


@pytest.mark.parametrize("name", BOTH)
def test_vmap_with_derivatives(name):
    check(BOTH[name])


def test_functional_call_and_ensembles():
    def case(lib, f):
        models = []
        for k in range(3):
            model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Tanh(), lib.nn.Linear(4, 2))
            for i, p in enumerate(model.parameters()):
                p.data = make(lib, *p.shape, seed=i + 10 * k)
            models.append(model)
        params, buffers = f.stack_module_state(models)
        x = make(lib, 5, 3)
        alone = f.functional_call(models[0], {k: v[1] for k, v in params.items()}, (x,))
        many = f.vmap(
            lambda p, b, x: f.functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None)
        )(params, buffers, x)
        return params, alone, many

    check(case)


AUTOGRAD = {
    "jacobian": lambda t, f: f.jacobian(lambda x: x**2, make(t, 3)),
    "jacobian of two": lambda t, f: f.jacobian(
        lambda x, y: (x * y, x.sum()), (make(t, 3), make(t, 3, seed=1))
    ),
    "jacobian forward": lambda t, f: f.jacobian(
        lambda x: x.sin(), make(t, 3), strategy="forward-mode", vectorize=True
    ),
    "hessian": lambda t, f: f.hessian(lambda x: (x**3).sum(), make(t, 3)),
    "hessian of two": lambda t, f: f.hessian(
        lambda x, y: (x**2 * y).sum(), (make(t, 3), make(t, 3, seed=1))
    ),
    "vjp": lambda t, f: f.vjp(lambda x: x**3, make(t, 3), make(t, 3, seed=1)),
    "jvp": lambda t, f: f.jvp(lambda x: x**3, make(t, 3), make(t, 3, seed=1)),
    "vhp": lambda t, f: f.vhp(lambda x: (x**3).sum(), make(t, 3), make(t, 3, seed=1)),
    "hvp": lambda t, f: f.hvp(lambda x: (x**3).sum(), make(t, 3), make(t, 3, seed=1)),
    "hvp of two": lambda t, f: f.hvp(
        lambda x, y: (x**3 * y).sum(),
        (make(t, 3), make(t, 3, seed=2)),
        (make(t, 3, seed=1), make(t, 3, seed=3)),
    ),
    "vjp without v": lambda t, f: f.vjp(lambda x: (x**3).sum(), make(t, 3)),
}


@pytest.mark.parametrize("name", AUTOGRAD)
def test_autograd_functional(name):
    mine = arrays(AUTOGRAD[name](fb, fb.autograd.functional))
    assert_same(mine, arrays(AUTOGRAD[name](torch, torch.autograd.functional)))


def strict_case(lib, functional):
    return functional.jacobian(lambda x: lib.ones(2), make(lib, 3), strict=True)


ERRORS = {
    "grad of a vector": (lambda t, f: f.grad(lambda x: x)(make(t, 3)), RuntimeError),
    "grad argnums": (lambda t, f: f.grad(lambda x: x.sum(), 1)(make(t, 3)), RuntimeError),
    "vjp structure": (
        lambda t, f: f.vjp(lambda x: (x, x), make(t, 3))[1](make(t, 3)),
        RuntimeError,
    ),
    "vjp shape": (lambda t, f: f.vjp(lambda x: x, make(t, 3))[1](make(t, 2)), RuntimeError),
    "sizes": (lambda t, f: f.vmap(lambda x, y: x)(make(t, 3), make(t, 2)), ValueError),
    "nothing mapped": (lambda t, f: f.vmap(lambda x: x, None)(make(t, 3)), ValueError),
    "in_dims structure": (lambda t, f: f.vmap(lambda x: x, (0, 0))(make(t, 3)), ValueError),
    "in_dim range": (lambda t, f: f.vmap(lambda x: x, 2)(make(t, 3)), ValueError),
    "no tensor": (lambda t, f: f.vmap(lambda x: x)(3), ValueError),
    "result": (lambda t, f: f.vmap(lambda x: 3)(make(t, 3)), ValueError),
    "out_dims structure": (
        lambda t, f: f.vmap(lambda x: (x, x), out_dims=(0, 0, 0))(make(t, 3)),
        ValueError,
    ),
    "out_dim None": (lambda t, f: f.vmap(lambda x: x, out_dims=None)(make(t, 3)), ValueError),
    "item": (lambda t, f: f.vmap(lambda x: x * x.item())(make(t, 3)), RuntimeError),
    "random": (lambda t, f: f.vmap(lambda x: x + t.rand(2))(make(t, 3)), RuntimeError),
    "in-place": (
        lambda t, f: f.vmap(lambda x, y: x.add_(y), (None, 0))(make(t, 3), make(t, 2, 3)),
        RuntimeError,
    ),
    "randomness": (lambda t, f: f.vmap(lambda x: x, randomness="x")(make(t, 3)), RuntimeError),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    case, error = ERRORS[name]
    for lib in (torch, fb):
        with pytest.raises(error):
            case(lib, lib.func)


def test_strict_jacobian_refuses_independent_outputs():
    for lib, functional in ((torch, torch.autograd.functional), (fb, fb.autograd.functional)):
        with pytest.raises(RuntimeError):
            strict_case(lib, functional)
