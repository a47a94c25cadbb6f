"""Imports every family, so that each registers its functions."""

from flambeau.functional import (  # noqa: F401
    activation,
    attention,
    convolution,
    ctc,
    distances,
    dropout,
    linear,
    losses,
    multihead,
    normalisation,
    padding,
    pooling,
    regression,
    vision,
)
