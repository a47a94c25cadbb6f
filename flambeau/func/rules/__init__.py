"""Batching rules by family of primitives; importing the package fills the table."""

from flambeau.func.rules import (
    along,
    matrices,
    pointwise,
    positions,
    products,
    statistics,
    views,
    windows,
)
from flambeau.func.rules.register import FAMILIES, RULES, padded

__all__ = [
    "FAMILIES",
    "RULES",
    "along",
    "matrices",
    "padded",
    "pointwise",
    "positions",
    "products",
    "statistics",
    "views",
    "windows",
]
