"""Every law that draws from an `Engine`: law(engine, shape, dtype, ...) -> ndarray.

The numbers come back in the order they are drawn, row-major in `shape`: an output that is laid
out otherwise is filled in its memory order by the caller. dtype is a NumPy dtype (bfloat16 is
that of ml_dtypes); complex types draw real and imaginary parts in turn. An array parameter must
be given in the same order, too.

For the same seed the numbers are, bit for bit, those of PyTorch's CPU generator on a processor
with AVX2, except the laws in `rejection`. A parameter out of range raises OpError.
"""

from flambeau.runtime.integers import integers
from flambeau.runtime.laws import (
    bernoulli,
    cauchy,
    dropout_mask,
    exponential,
    geometric,
    rrelu_slopes,
    uniform,
)
from flambeau.runtime.mersenne import DEFAULT_SEED, Engine
from flambeau.runtime.multinomial import multinomial
from flambeau.runtime.normals import log_normal, normal, normal_around
from flambeau.runtime.permutation import permutation
from flambeau.runtime.rejection import binomial, dirichlet, poisson, standard_gamma

__all__ = [
    "DEFAULT_SEED", "Engine",
    "uniform", "normal", "normal_around", "log_normal", "exponential", "geometric", "cauchy",
    "bernoulli", "dropout_mask", "rrelu_slopes", "integers", "permutation", "multinomial",
    "poisson", "binomial", "standard_gamma", "dirichlet",
]
