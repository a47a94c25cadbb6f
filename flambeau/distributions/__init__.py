"""Probability distributions under PyTorch's names: one file each; transforms; divergences."""

from flambeau.distributions import constraints, transforms
from flambeau.distributions.bernoulli import Bernoulli
from flambeau.distributions.beta import Beta
from flambeau.distributions.binomial import Binomial
from flambeau.distributions.categorical import Categorical
from flambeau.distributions.cauchy import Cauchy
from flambeau.distributions.chi2 import Chi2
from flambeau.distributions.constraint_registry import biject_to, transform_to
from flambeau.distributions.continuous_bernoulli import ContinuousBernoulli
from flambeau.distributions.dirichlet import Dirichlet
from flambeau.distributions.distribution import Distribution, ExponentialFamily
from flambeau.distributions.exponential import Exponential
from flambeau.distributions.fishersnedecor import FisherSnedecor
from flambeau.distributions.gamma import Gamma
from flambeau.distributions.generalized_pareto import GeneralizedPareto
from flambeau.distributions.geometric import Geometric
from flambeau.distributions.gumbel import Gumbel
from flambeau.distributions.half_cauchy import HalfCauchy
from flambeau.distributions.half_normal import HalfNormal
from flambeau.distributions.independent import Independent
from flambeau.distributions.inverse_gamma import InverseGamma
from flambeau.distributions.kl import kl_divergence, register_kl
from flambeau.distributions.kumaraswamy import Kumaraswamy
from flambeau.distributions.laplace import Laplace
from flambeau.distributions.log_normal import LogNormal
from flambeau.distributions.logistic_normal import LogisticNormal
from flambeau.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from flambeau.distributions.matrix_transforms import (
    CatTransform,
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StackTransform,
    StickBreakingTransform,
)
from flambeau.distributions.mixture_same_family import MixtureSameFamily
from flambeau.distributions.multinomial import Multinomial
from flambeau.distributions.multivariate_normal import MultivariateNormal
from flambeau.distributions.negative_binomial import NegativeBinomial
from flambeau.distributions.normal import Normal
from flambeau.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from flambeau.distributions.pareto import Pareto
from flambeau.distributions.poisson import Poisson
from flambeau.distributions.relaxed_bernoulli import RelaxedBernoulli
from flambeau.distributions.relaxed_categorical import RelaxedOneHotCategorical
from flambeau.distributions.studentT import StudentT
from flambeau.distributions.transformed_distribution import TransformedDistribution
from flambeau.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    ComposeTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from flambeau.distributions.uniform import Uniform
from flambeau.distributions.weibull import Weibull
