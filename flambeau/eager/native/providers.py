"""Who computes what natively, from which size on."""

from __future__ import annotations

import os
from collections.abc import Callable

from flambeau.core.spec import Spec
from flambeau.eager import plans
from flambeau.eager.native import nests
from flambeau.eager.native.attentions import attention_provider
from flambeau.eager.native.convolutions import conv_provider
from flambeau.eager.native.poolings import pool_provider
from flambeau.eager.native.products import linear_provider, matmul_provider

SMALL = 8192  # elements touched; below, NumPy's call overhead wins


def work(specs: list, results: tuple[Spec, ...]) -> int:
    return max(s.numel for s in (*results, *(s for s in specs if s is not None and not s.weak)))


def loop_provider(primitive, specs: list, params: dict, result) -> Callable | None:
    """A kernel of the loop compiler for a large signature that can be lowered."""
    results = result if isinstance(result, tuple) else (result,)
    if work(specs, results) < SMALL or any(s.numel == 0 for s in results):
        return None
    found = nests.nests_of(primitive, specs, params, results)
    if found is None:
        return None
    kernel = nests.kernel_of(found, specs, results)
    return nests.fresh_plan(*kernel, results, isinstance(result, tuple))


def loop_inplace_provider(primitive, target: Spec, specs: list, params: dict,
                          otherwise: Callable) -> Callable | None:
    """The same, writing into a target."""
    if target.numel < SMALL or primitive.write is not None and primitive.lower is None:
        return None
    found = nests.nests_of(primitive, specs, params, (target,))
    if found is None:
        return None
    return nests.overwriting_plan(*nests.kernel_of(found, specs, (target,)), otherwise)


def install() -> None:
    """Let native kernels take over; `FLAMBEAU_NATIVE=0` leaves everything to NumPy."""
    if os.environ.get("FLAMBEAU_NATIVE", "1") == "0":
        return
    plans.PROVIDERS += [linear_provider, matmul_provider, conv_provider,
                        pool_provider, attention_provider, loop_provider]
    plans.INPLACE_PROVIDERS.append(loop_inplace_provider)
