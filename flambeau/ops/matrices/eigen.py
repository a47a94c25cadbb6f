"""Eigenvalues and eigenvectors, general and Hermitian.

Gradients hold for functions that do not depend on the phase of eigenvectors, and where
eigenvalues are distinct. Of a Hermitian matrix one triangle is read.
"""

from __future__ import annotations

import numpy as np

from flambeau.core.errors import OpError, complaint
from flambeau.core.spec import Spec
from flambeau.ops.matrices.checks import field, fresh, hermitian_part, positive_definite, square
from flambeau.ops.matrices.lu import solve
from flambeau.ops.registry import primitive


def finite(op: str, x: np.ndarray) -> None:
    if not np.isfinite(x).all():
        raise OpError(complaint(op, "the input must not contain infs or NaNs"))


def gaps(w):
    """E[i, j] = w[j] - w[i], with ones on the diagonal."""
    n = w.shape[-1]
    return w[..., None, :] - w[..., :, None] + w.new_ones((n,)).diag_embed()


# Hermitian -----------------------------------------------------------------------------------


def eigh_meta(x: Spec, *, upper):
    """(eigenvalues in ascending order, eigenvectors)."""
    field("linalg.eigh", x)
    square("linalg.eigh", x)
    n = x.shape[-1]
    return fresh(x, n, dtype=x.dtype.to_real()), fresh(x, n, n)


def eigh_ref(x, *, upper):
    finite("linalg.eigh", x)
    return tuple(np.linalg.eigh(x, "U" if upper else "L"))


def eigh_vjp(cts, out0, out1):
    """The Hermitian part of V [diag(gw) + (V^H gV) / E] V^H."""
    gw, gv = cts
    v = out1
    if gv is None:
        return (None if gw is None else (v * gw.unsqueeze(-2)) @ v.mH,)
    inner = (v.mH @ gv) / gaps(out0)
    inner = inner - inner.diagonal(0, -2, -1).diag_embed()
    if gw is not None:
        inner = inner + gw.diag_embed().to(inner.dtype)
    total = v @ inner @ v.mH
    return ((total + total.mH) * 0.5,)


def eigvalsh_meta(x: Spec, *, upper) -> Spec:
    field("linalg.eigvalsh", x)
    square("linalg.eigvalsh", x)
    return fresh(x, x.shape[-1], dtype=x.dtype.to_real())


def eigvalsh_ref(x, *, upper):
    finite("linalg.eigvalsh", x)
    return np.linalg.eigvalsh(x, "U" if upper else "L")


def eigvalsh_vjp(ct, x, upper):
    v = eigh(x, upper=upper)[1]
    return (v * ct.unsqueeze(-2)) @ v.mH


def hermitian_samples(rng):
    for shape, upper in [((3, 3), False), ((2, 2, 2), True), ((0, 0), False)]:
        yield (positive_definite(rng, *shape),), dict(upper=upper)


eigh = primitive("eigh", meta=eigh_meta, ref=eigh_ref, vjp=eigh_vjp, samples=hermitian_samples,
                 tangents=dict(x=hermitian_part))
eigvalsh = primitive("eigvalsh", meta=eigvalsh_meta, ref=eigvalsh_ref, vjp=dict(x=eigvalsh_vjp),
                     samples=hermitian_samples, tangents=dict(x=hermitian_part))

# General -------------------------------------------------------------------------------------


def eig_meta(x: Spec):
    """(eigenvalues, eigenvectors), both complex."""
    field("linalg.eig", x)
    square("linalg.eig", x)
    n, kind = x.shape[-1], x.dtype.to_complex()
    return fresh(x, n, dtype=kind), fresh(x, n, n, dtype=kind)


def complex_of(x: np.ndarray) -> np.dtype:
    return np.result_type(x.dtype, np.complex64)


def eig_ref(x):
    finite("linalg.eig", x)
    w, v = np.linalg.eig(x)
    return w.astype(complex_of(x)), v.astype(complex_of(x))


def eig_vjp(cts, out0, out1):
    """V^-H [diag(gw) + (V^H gV - V^H V diag(Re(V^H gV))) / conj(E)] V^H."""
    gw, gv = cts
    w, v = out0, out1
    if gw is None and gv is None:
        return (None,)
    inner = None
    if gv is not None:
        turned = v.mH @ gv
        sizes = turned.diagonal(0, -2, -1).real
        inner = (turned - (v.mH @ v) * sizes.unsqueeze(-2)) / gaps(w).conj()
        inner = inner - inner.diagonal(0, -2, -1).diag_embed()
    if gw is not None:
        inner = gw.diag_embed() if inner is None else inner + gw.diag_embed()
    return (solve(v.mH, inner @ v.mH)[0],)


def eigvals_meta(x: Spec) -> Spec:
    field("linalg.eigvals", x)
    square("linalg.eigvals", x)
    return fresh(x, x.shape[-1], dtype=x.dtype.to_complex())


def eigvals_ref(x):
    finite("linalg.eigvals", x)
    return np.linalg.eigvals(x).astype(complex_of(x))


def eigvals_vjp(ct, x):
    v = eig(x)[1]
    return solve(v.mH, ct.unsqueeze(-1) * v.mH)[0]


def general_samples(rng):
    """Real eigenvalues: the phase of complex eigenvectors is not a function of the matrix."""
    for shape in [(3, 3), (2, 2, 2), (0, 0)]:
        x = positive_definite(rng, *shape)
        yield (x + 0.1 * np.triu(rng.normal(size=shape)),), {}


eig = primitive("eig", meta=eig_meta, ref=eig_ref, vjp=eig_vjp, samples=general_samples)
eigvals = primitive("eigvals", meta=eigvals_meta, ref=eigvals_ref, vjp=dict(x=eigvals_vjp),
                    samples=general_samples)
