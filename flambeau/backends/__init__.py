"""`torch.backends`: switches of the libraries under PyTorch.

Programs set and read them; flambeau generates its kernels, so few of them change anything.
"""

from flambeau.backends import (
    cpu,
    cuda,
    cudnn,
    cusparselt,
    kleidiai,
    mha,
    mkl,
    mkldnn,
    mps,
    nnpack,
    openmp,
    opt_einsum,
    quantized,
    xnnpack,
)
from flambeau.core.nearest import missing_name

fp32_precision = "none"
miopen = cudnn

__getattr__ = missing_name(__name__)
