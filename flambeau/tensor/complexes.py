"""Complex tensors under PyTorch's names: parts, conjugates, polar form."""

from __future__ import annotations

from flambeau.core import context
from flambeau.core.errors import ArgumentError, complaint
from flambeau.ops import complexes
from flambeau.tensor.forms import NOTHING, tensor_argument, unary
from flambeau.tensor.public import public
from flambeau.tensor.tensor import Tensor


@public(out=False)
def conj(input):
    """The complex conjugate, computed at once; a real tensor is its own."""
    return complexes.conj(input) if input._spec.dtype.is_complex else input


def conj_physical_(self):
    """self <- its conjugate."""
    return context.bind_inplace(complexes.conj, self, (self,), NOTHING)


@public(inplace=conj_physical_, inplace_function=True)
def conj_physical(input):
    """The complex conjugate as a new tensor; a real tensor is its own."""
    return conj(input)


@public(out=False)
def resolve_conj(input):
    """`input`: conjugation is never lazy here."""
    return input


@public(out=False)
def resolve_neg(input):
    """`input`: negation is never lazy here."""
    return input


@public(out=False)
def is_conj(input):
    """False: conjugation is never lazy here."""
    return False


@public(out=False)
def is_neg(input):
    """False: negation is never lazy here."""
    return False


@public(method=False, out=False)
def real(input):
    """The real part, a view; a real tensor is its own."""
    return complexes.real(input) if input._spec.dtype.is_complex else input


@public(method=False, out=False)
def imag(input):
    """The imaginary part of a complex tensor, a view."""
    return complexes.imag(input)


def set_real(self: Tensor, value) -> None:
    real(self).copy_(value) if isinstance(value, Tensor) else real(self).fill_(value)


def set_imag(self: Tensor, value) -> None:
    imag(self).copy_(value) if isinstance(value, Tensor) else imag(self).fill_(value)


Tensor.real = property(real, set_real)
Tensor.imag = property(imag, set_imag)


@public(method=False, out=False)
def view_as_real(input):
    """A view of shape (.., 2): real and imaginary parts."""
    return complexes.view_as_real(input)


@public(method=False, out=False)
def view_as_complex(input):
    """A complex view of pairs: the last dimension has size 2."""
    return complexes.view_as_complex(input)


def parts(op: str, real, imag) -> tuple:
    return tensor_argument(op, real, "real"), tensor_argument(op, imag, "imag")


@public(method=False, exact_out=True)
def complex(real, imag):
    """real + i imag."""
    return complexes.complex(*parts("complex", real, imag))


@public(method=False, exact_out=True)
def polar(abs, angle):
    """abs (cos(angle) + i sin(angle))."""
    abs, angle = parts("polar", abs, angle)
    if abs.dtype is not angle.dtype:
        raise ArgumentError(complaint("polar", "both arguments must have one dtype", dict(
            abs=abs.dtype, angle=angle.dtype)))
    return complexes.complex(abs * angle.cos(), abs * angle.sin())


angle = unary(complexes.angle, "The argument of a complex number; 0 or pi of a real one.",
              inplace=False)


@public(out=False)
def adjoint(input):
    """The conjugate of a matrix with rows and columns exchanged."""
    return input.transpose(-2, -1).conj() if input.is_complex() else input.transpose(-2, -1)
