"""Dense linear algebra over batches of matrices: factorisations, solvers, spectra.

Matrices are the last two dimensions; leading ones are a batch and equal for all operands.
NumPy's LAPACK does what it offers; the rest is written here, a column or a block at a time for
the whole batch. Primitives report failure by `info` (0: fine), as LAPACK does; the public
functions of `flambeau.linalg` turn that into errors.
"""

from flambeau.ops.matrices import (
    cholesky,
    determinants,
    eigen,
    exponential,
    lu,
    orthogonal,
    singular,
    symmetric,
    triangular,
)

__all__ = ["cholesky", "determinants", "eigen", "exponential", "lu", "orthogonal", "singular",
           "symmetric", "triangular"]
