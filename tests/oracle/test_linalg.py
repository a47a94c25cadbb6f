"""Linear algebra, Fourier transforms, windows and masked reductions against PyTorch."""

import numpy as np
import pytest

import flambeau as fb

torch = pytest.importorskip("torch")

SQUARE = [(3, 3), (2, 3, 3), (1, 1)]
KINDS = ["float64", "complex128"]


def drawn(shape, kind, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if kind.startswith("complex") else x


def positive(shape, kind):
    x = drawn(shape, kind)
    return x @ np.swapaxes(x, -1, -2).conj() + np.eye(shape[-1])


def leaves(array):
    return fb.from_numpy(array.copy()).requires_grad_(), torch.from_numpy(
        array.copy()).requires_grad_()


def close(got, expected, tolerance=1e-8):
    assert tuple(got.shape) == tuple(expected.shape)
    assert str(got.dtype) == str(expected.dtype)
    np.testing.assert_allclose(got.detach().resolve_conj().numpy(),
                               expected.detach().resolve_conj().numpy(), tolerance, tolerance)


def scalar(x):
    """A real function of a result that does not depend on phases."""
    return (x.abs() ** 2).sum() + x.abs().sum()


def compare(function, *arrays, outputs=lambda r: r if isinstance(r, tuple) else (r,)):
    """Results, gradients and gradients of gradients are PyTorch's."""
    ours, theirs = zip(*map(leaves, arrays))
    got, expected = outputs(function(fb, *ours)), outputs(function(torch, *theirs))
    for g, e in zip(got, expected, strict=True):
        close(g, e)
    first = fb.autograd.grad(sum(scalar(g) for g in got), ours, create_graph=True)
    wanted = torch.autograd.grad(sum(scalar(e) for e in expected), theirs, create_graph=True)
    for g, e in zip(first, wanted, strict=True):
        close(g, e, 1e-6)
    again = fb.autograd.grad(sum(scalar(g) for g in first), ours)
    wanted = torch.autograd.grad(sum(scalar(e) for e in wanted), theirs)
    for g, e in zip(again, wanted, strict=True):
        close(g, e, 1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SQUARE)
@pytest.mark.parametrize("name", ["det", "inv", "matrix_exp", "slogdet", "lu_factor", "pinv"])
def test_functions_of_square_matrices(name, shape, kind):
    outputs = {"lu_factor": lambda r: (r[0],), "slogdet": lambda r: (r[0], r[1])}.get(
        name, lambda r: (r,))
    if kind == "float64" and name == "slogdet":
        outputs = lambda r: (r[1],)
    compare(lambda lib, x: getattr(lib.linalg, name)(x), drawn(shape, kind), outputs=outputs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(kind, upper):
    compare(lambda lib, x: lib.linalg.cholesky(x, upper=upper), positive((2, 3, 3), kind))
    factor = np.linalg.cholesky(positive((2, 3, 3), kind), upper=upper)
    compare(lambda lib, b, f: lib.cholesky_solve(b, f, upper), drawn((2, 3, 2), kind), factor)
    compare(lambda lib, f: lib.cholesky_inverse(f, upper), factor)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", [True, False])
def test_solvers(kind, left):
    a, b = drawn((2, 3, 3), kind), drawn((3, 3), kind, 1)
    compare(lambda lib, x, y: lib.linalg.solve(x, y, left=left), a, b)
    for upper in (True, False):
        compare(lambda lib, x, y: lib.linalg.solve_triangular(
            x, y, upper=upper, left=left), a, b)  # noqa: B023
    for adjoint in (True, False):
        compare(lambda lib, x, y: lib.linalg.lu_solve(
            *lib.linalg.lu_factor(x), y, left=left, adjoint=adjoint), a, b)  # noqa: B023


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 2), (2, 4)])
def test_factorisations_of_any_shape(shape, kind):
    x = drawn(shape, kind)
    compare(lambda lib, x: lib.linalg.qr(x), x)
    compare(lambda lib, x: lib.linalg.lu(x), x, outputs=lambda r: (r[1], r[2]))
    compare(lambda lib, x: lib.linalg.svdvals(x), x)
    compare(lambda lib, x: lib.linalg.svd(x, full_matrices=False), x,
            outputs=lambda r: (r[0].abs(), r[1], r[2].abs()))
    if shape[-2] >= shape[-1]:
        tau = drawn((*shape[:-2], shape[-1]), kind, 1)
        compare(lambda lib, a, t: lib.linalg.householder_product(a, t), x, tau)


@pytest.mark.parametrize("kind", KINDS)
def test_spectra(kind):
    x = positive((2, 3, 3), kind)
    for uplo in "UL":
        compare(lambda lib, x: lib.linalg.eigh(x, uplo), x,  # noqa: B023
                outputs=lambda r: (r[0], r[1].abs()))
        compare(lambda lib, x: lib.linalg.eigvalsh(x, uplo), x)  # noqa: B023
    y = drawn((3, 3), kind)
    order = lambda w: (w.abs(),)
    compare(lambda lib, x: lib.linalg.eigvals(x), y, outputs=order)
    compare(lambda lib, x: lib.linalg.eig(x), y, outputs=lambda r: (r[0].abs(), r[1].abs()))


@pytest.mark.parametrize("driver", ["gels", "gelsy", "gelsd", "gelss", None])
def test_least_squares(driver):
    for a, b in [((4, 2), (4, 3)), ((2, 4), (2, 1)), ((2, 4, 3), (2, 4))]:
        x, y = drawn(a, "float64"), drawn(b, "float64", 1)
        got = fb.linalg.lstsq(fb.from_numpy(x), fb.from_numpy(y), driver=driver)
        expected = torch.linalg.lstsq(torch.from_numpy(x), torch.from_numpy(y), driver=driver)
        for g, e in zip(got, expected, strict=True):
            close(g, e)


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_ldl(kind, hermitian):
    for seed in range(8):
        x = drawn((6, 6), kind, seed)
        x = x + (x.T.conj() if hermitian else x.T)
        got = fb.linalg.ldl_factor(fb.from_numpy(x), hermitian=hermitian)
        expected = torch.linalg.ldl_factor(torch.from_numpy(x), hermitian=hermitian)
        for g, e in zip(got, expected, strict=True):
            close(g, e)
        b = drawn((6, 2), kind, seed + 100)
        solved = fb.linalg.ldl_solve(*got, fb.from_numpy(b), hermitian=hermitian)
        np.testing.assert_allclose(x @ solved.numpy(), b, 1e-9, 1e-9)


@pytest.mark.parametrize("n", [1, 31, 33, 70])
def test_lu_in_panels(n):
    x = drawn((2, n, n + 5), "float64")
    got, expected = fb.linalg.lu_factor(fb.from_numpy(x)), torch.linalg.lu_factor(
        torch.from_numpy(x))
    close(got.LU, expected.LU)
    close(got.pivots, expected.pivots)


SINGULAR = [
    ("inv", lambda lib, x: lib.linalg.inv(x)),
    ("solve", lambda lib, x: lib.linalg.solve(x, x)),
    ("cholesky", lambda lib, x: lib.linalg.cholesky(x)),
]


@pytest.mark.parametrize("function", [f for _, f in SINGULAR], ids=[n for n, _ in SINGULAR])
def test_singular_matrices_raise_linalg_error(function):
    x = np.zeros((2, 2, 2))
    x[0] = np.eye(2)
    with pytest.raises(fb.linalg.LinAlgError, match="batch element=\\(1,\\)"):
        function(fb, fb.from_numpy(x))
    with pytest.raises(torch.linalg.LinAlgError):
        function(torch, torch.from_numpy(x))
    assert issubclass(fb.linalg.LinAlgError, RuntimeError)


def test_info_of_the_forgiving_forms():
    x = np.array([[[1.0, 2], [2, 4]], [[2, 0], [0, 2]], [[0, 0], [0, 0]]])
    ours, theirs = fb.from_numpy(x), torch.from_numpy(x)
    for name in ("inv_ex", "cholesky_ex", "lu_factor_ex"):
        got, expected = getattr(fb.linalg, name)(ours), getattr(torch.linalg, name)(theirs)
        close(got.info, expected.info)


@pytest.mark.parametrize("ord", ["fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_matrix_norms(ord):
    compare(lambda lib, x: lib.linalg.matrix_norm(x, ord), drawn((2, 3, 4), "float64"))
    x = drawn((3, 3), "float64")
    close(fb.linalg.cond(fb.from_numpy(x), ord), torch.linalg.cond(torch.from_numpy(x), ord))


# Fourier transforms ---------------------------------------------------------------------------

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", ONE + [n + "2" for n in ONE] + [n + "n" for n in ONE])
def test_transforms(name, norm):
    kind = "float64" if name.startswith(("rfft", "ihfft")) else "complex128"
    x = drawn((3, 4, 5), kind)
    compare(lambda lib, x: getattr(lib.fft, name)(x, norm=norm), x)
    size = 6 if name in ONE else (3, 6)
    compare(lambda lib, x: getattr(lib.fft, name)(x, size, norm=norm), x)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("onesided", [True, False])
def test_spectrograms_round_trip(center, onesided):
    x = drawn((2, 64), "float64")
    window = fb.hann_window(16, dtype=fb.float64)
    twin = torch.hann_window(16, dtype=torch.float64)
    how = dict(n_fft=16, hop_length=4, center=center, onesided=onesided)
    got = fb.stft(fb.from_numpy(x), window=window, return_complex=True, **how)
    close(got, torch.stft(torch.from_numpy(x), window=twin, return_complex=True, **how))
    if center:
        back = fb.istft(got, window=window, length=64, **how)
        np.testing.assert_allclose(back.numpy(), x, atol=1e-10)


@pytest.mark.parametrize("name", ["hann", "hamming", "bartlett", "blackman", "kaiser"])
def test_windows_by_length(name):
    for n in (0, 1, 2, 7):
        for periodic in (True, False):
            close(getattr(fb, f"{name}_window")(n, periodic),
                  getattr(torch, f"{name}_window")(n, periodic), 1e-5)


# Masked reductions ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "amax", "amin", "var", "logsumexp",
                                  "softmax", "cumsum", "median"])
def test_masked(name):
    from torch import masked as theirs

    x = drawn((3, 4), "float64")
    mask = np.array([[1, 0, 1, 1], [0, 0, 0, 1], [1, 1, 1, 1]], bool)
    got = getattr(fb.masked, name)(fb.from_numpy(x), 1, mask=fb.from_numpy(mask))
    close(got, getattr(theirs, name)(torch.from_numpy(x), 1, mask=torch.from_numpy(mask)))
