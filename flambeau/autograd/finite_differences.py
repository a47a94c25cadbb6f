"""Gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flambeau.autograd.gradients import as_tuple, grad
from flambeau.core.dtype import FLOAT
from flambeau.core.errors import ValueRangeError, complaint
from flambeau.ops.creation import constant
from flambeau.tensor.tensor import Tensor


class GradcheckError(RuntimeError):
    """A gradient differs from its finite difference."""


def differentiable(values: Sequence[Any]) -> list[Tensor]:
    return [v for v in values if isinstance(v, Tensor) and v.requires_grad]


def outputs_of(func: Callable, inputs: tuple) -> list[Tensor]:
    return [o for o in as_tuple(func(*inputs))
            if isinstance(o, Tensor) and o.dtype.category >= FLOAT]


def numerical(func: Callable, inputs: tuple, x: Tensor, eps: float) -> list[np.ndarray]:
    """d output / d x by central differences: per output (x elements, output elements).

    For complex x the columns are d/d real + 1j d/d imaginary, which pairs with the conjugate
    convention of `analytical`.
    """
    columns: list[list[np.ndarray]] = []
    parts = (eps,) if not x.dtype.is_complex else (eps, eps * 1j)
    for position in np.ndindex(*x.shape):
        rows = []
        for step in parts:
            before = x._array[position]
            x._array[position] = before + step
            up = [o._array.astype(np.complex128).reshape(-1).copy()
                  for o in outputs_of(func, inputs)]
            x._array[position] = before - step
            down = [o._array.astype(np.complex128).reshape(-1).copy()
                    for o in outputs_of(func, inputs)]
            x._array[position] = before
            rows.append([(u - d) / (2 * eps) for u, d in zip(up, down)])
        columns.append(rows)
    count = len(outputs_of(func, inputs))
    return [np.array([[row[k] for row in rows] for rows in columns]) for k in range(count)]


def analytical(output: Tensor, x: Tensor, cotangent: complex) -> np.ndarray:
    """Gradient of <cotangent e_i, output> with respect to x, for every element i of output."""
    rows = []
    for position in np.ndindex(*output.shape):
        seed = np.zeros(output.shape, output._spec.numpy)
        seed[position] = cotangent
        got = grad(output, x, constant(seed), retain_graph=True, allow_unused=True)[0]
        rows.append(np.zeros(x.shape).reshape(-1) if got is None
                    else got._array.reshape(-1).copy())
    return np.array(rows)  # (output elements, x elements)


def expected(numeric: np.ndarray, cotangent: complex, is_complex: bool) -> np.ndarray:
    """What `analytical` should give, from finite differences of shape (x, parts, outputs)."""
    real = (np.conj(cotangent) * numeric).real
    if not is_complex:
        return real[:, 0].T
    return (real[:, 0] + 1j * real[:, 1]).T


def gradcheck(func: Callable, inputs, *, eps: float = 1e-6, atol: float = 1e-5,
              rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0,
              check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
              check_batched_grad: bool = False, check_batched_forward_grad: bool = False,
              check_forward_ad: bool = False, check_backward_ad: bool = True,
              fast_mode: bool = False, masked: bool | None = None) -> bool:
    """Does backward agree with central differences, element by element?

    Inputs should be float64: differences of float32 are too coarse.
    """
    inputs = as_tuple(inputs)
    wanted = differentiable(inputs)
    if not wanted:
        raise ValueRangeError(complaint("gradcheck", "expects at least one input tensor to require "
                                        "gradient"))
    try:
        for x in wanted:
            check_input(func, inputs, x, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def check_input(func: Callable, inputs: tuple, x: Tensor, eps: float, atol: float,
                rtol: float) -> None:
    differences = numerical(func, inputs, x, eps)
    for k, (out, numeric) in enumerate(zip(outputs_of(func, inputs), differences)):
        if not out.requires_grad:
            if np.abs(numeric).max(initial=0) > atol:
                raise GradcheckError(complaint(
                    "gradcheck", f"output {k} changes with an input but does not require grad"))
            continue
        for cotangent in (1, 1j) if out.dtype.is_complex else (1,):
            got = analytical(out, x, cotangent)
            want = expected(numeric, cotangent, x.dtype.is_complex).reshape(got.shape)
            if not np.allclose(got, want, rtol=rtol, atol=atol):
                worst = np.unravel_index(np.abs(got - want).argmax(), got.shape)
                raise GradcheckError(complaint(
                    "gradcheck", f"Jacobian mismatch for output {k}", dict(
                        output_element=worst[0], input_element=worst[1],
                        analytical=got[worst], numerical=want[worst]),
                    "If the function is right, check that inputs are float64 and not at a kink."))


def gradgradcheck(func: Callable, inputs, grad_outputs=None, *, eps: float = 1e-6,
                  atol: float = 1e-5, rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False,
                  raise_exception: bool = True, nondet_tol: float = 0.0,
                  check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
                  check_batched_grad: bool = False, check_fwd_over_rev: bool = False,
                  check_rev_over_rev: bool = True, fast_mode: bool = False,
                  masked: bool | None = None) -> bool:
    """gradcheck of the gradient itself, also with respect to the cotangents."""
    inputs = as_tuple(inputs)
    if grad_outputs is None:
        grad_outputs = [random_like(o) for o in outputs_of(func, inputs) if o.requires_grad]
    cotangents = tuple(as_tuple(grad_outputs))
    count = len(inputs)

    def gradient(*values):
        given, cts = values[:count], values[count:]
        outs = [o for o in outputs_of(func, given) if o.requires_grad]
        found = grad(outs, differentiable(given), cts, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(gradient, (*inputs, *cotangents), eps=eps, atol=atol, rtol=rtol,
                     raise_exception=raise_exception)


def random_like(t: Tensor) -> Tensor:
    rng = np.random.default_rng(0)
    values = rng.standard_normal(t.shape)
    if t.dtype.is_complex:
        values = values + 1j * rng.standard_normal(t.shape)
    made = constant(np.asarray(values, t._spec.numpy))
    return made.requires_grad_()


