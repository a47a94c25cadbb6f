"""Imports every family, so that each registers its functions."""

from flambeau.functional import (  # noqa: F401
    activation,
    attention,
    convolution,
    dropout,
    linear,
    losses,
    normalisation,
    padding,
    pooling,
    regression,
)
