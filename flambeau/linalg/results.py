"""Named results of linear algebra."""

from __future__ import annotations

from collections import namedtuple

linalg_cholesky_ex = namedtuple("linalg_cholesky_ex", ("L", "info"))
linalg_eig = namedtuple("linalg_eig", ("eigenvalues", "eigenvectors"))
linalg_eigh = namedtuple("linalg_eigh", ("eigenvalues", "eigenvectors"))
linalg_inv_ex = namedtuple("linalg_inv_ex", ("inverse", "info"))
linalg_ldl_factor = namedtuple("linalg_ldl_factor", ("LD", "pivots"))
linalg_ldl_factor_ex = namedtuple("linalg_ldl_factor_ex", ("LD", "pivots", "info"))
linalg_lstsq = namedtuple("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"))
linalg_lu = namedtuple("linalg_lu", ("P", "L", "U"))
linalg_lu_factor = namedtuple("linalg_lu_factor", ("LU", "pivots"))
linalg_lu_factor_ex = namedtuple("linalg_lu_factor_ex", ("LU", "pivots", "info"))
linalg_qr = namedtuple("linalg_qr", ("Q", "R"))
linalg_slogdet = namedtuple("linalg_slogdet", ("sign", "logabsdet"))
linalg_solve_ex = namedtuple("linalg_solve_ex", ("result", "info"))
linalg_svd = namedtuple("linalg_svd", ("U", "S", "Vh"))
geqrf = namedtuple("geqrf", ("a", "tau"))
lu_unpack = namedtuple("lu_unpack", ("P", "L", "U"))
qr = namedtuple("qr", ("Q", "R"))
slogdet = namedtuple("slogdet", ("sign", "logabsdet"))
svd = namedtuple("svd", ("U", "S", "V"))
triangular_solve = namedtuple("triangular_solve", ("solution", "cloned_coefficient"))
