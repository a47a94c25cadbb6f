"""Who computes what natively, from which size on."""

from __future__ import annotations

import os
from collections.abc import Callable

from flambeau.core.spec import Spec
from flambeau.eager import plans
from flambeau.eager.native import churn, nests
from flambeau.eager.native.affine_scans import scan_call
from flambeau.eager.native.attentions import attention_call
from flambeau.eager.native.call import NativeCall
from flambeau.eager.native.convolutions import NAMES, conv_call
from flambeau.eager.native.path_scores import path_call
from flambeau.eager.native.poolings import pool_call
from flambeau.eager.native.products import is_small, linear_call, matmul_call
from flambeau.eager.native.recurrences import NAMES as RECURRENT
from flambeau.eager.native.recurrences import recurrent_call
from flambeau.eager.native.sorts import sort_call
from flambeau.eager.native.volumes import volume_plan
from flambeau.ops.elementwise import is_ufunc
from flambeau.tensor.tensor import Tensor

SMALL = 8192  # elements touched; below, one call of NumPy is as fast as one of a kernel
FEW = 32  # below, several calls of NumPy cost less than a kernel takes to make
CONSTANT = frozenset(("full", "fill", "arange"))  # NumPy fills small memory at once
CALLS: dict[str, Callable[..., NativeCall | None]] = {
    "linear": linear_call,
    "matmul": matmul_call,
    **dict.fromkeys(NAMES, conv_call),
    **dict.fromkeys(("max_pool", "max_pool_backward", "sum_pool", "sum_unpool"), pool_call),
    **dict.fromkeys(("sort", "topk"), sort_call),
    "recurrence": scan_call,
    **dict.fromkeys(("path_scores", "path_scores_backward"), path_call),
    **dict.fromkeys(RECURRENT, recurrent_call),
    **dict.fromkeys(("attention", "attention_backward"), attention_call),
}
"""(primitive, specs, params, result) -> a call of a kernel tuned by hand, or None."""


def work(specs: list, results: tuple[Spec, ...]) -> int:
    return max(s.numel for s in (*results, *(s for s in specs if s is not None and not s.weak)))


def least(primitive) -> int:
    """From which size on a kernel of loops pays."""
    return SMALL if primitive.name in CONSTANT or is_ufunc(primitive.ref) else FEW


def loop_call(primitive, specs: list, params: dict, result) -> NativeCall | None:
    """A kernel of the loop compiler for a signature that can be lowered."""
    several = isinstance(result, tuple)
    results = result if several else (result,)
    if any(s.numel == 0 for s in results):
        return None
    found = nests.nests_of(primitive, specs, params, results)
    return None if found is None else nests.call_of(found, specs, results, several)


def native_call(primitive, specs: list, params: dict, result) -> NativeCall | None:
    """One kernel for the signature, or None where only NumPy knows how."""
    tuned = CALLS.get(primitive.name)
    call = None if tuned is None else tuned(primitive, specs, params, result)
    return call or loop_call(primitive, specs, params, result)


def activated_call(primitive, specs: list, params: dict, result,
                   activation: str) -> NativeCall | None:
    """One kernel tuned by hand for a product and the activation of its result."""
    return CALLS[primitive.name](primitive, specs, params, result, activation)


def tailed_call(primitive, specs: list, params: dict, result, nest,
                buffers: tuple[str, ...]) -> NativeCall | None:
    """One kernel for a product and a nest that runs on its tiles; see `codegen.templates.tail`.
    The addresses of `buffers` follow the call's own arguments."""
    from flambeau.codegen.templates import Tail

    return CALLS[primitive.name](primitive, specs, params, result, Tail(nest, buffers))


def provider(primitive, specs: list, params: dict, result) -> Callable | None:
    """The eager plan: what is tuned by hand, or a kernel of loops where it is worth a call."""
    tuned = CALLS.get(primitive.name)
    if tuned in (linear_call, matmul_call) and (
        is_small(primitive, specs) or not churn.worth_product(primitive, specs, params)
    ):
        return None
    if tuned is conv_call and specs[0].ndim == 5:
        return volume_plan(primitive, specs, params, result)
    call = None if tuned is None else tuned(primitive, specs, params, result)
    results = result if isinstance(result, tuple) else (result,)
    amount = work(specs, results)
    if call is None and amount >= least(primitive) and (
        churn.worth_loops(primitive, specs, params, amount)
    ):
        call = loop_call(primitive, specs, params, result)
    return None if call is None else call.plan()


def inplace_provider(primitive, target: Spec, specs: list, params: dict,
                     otherwise: Callable) -> Callable | None:
    """A kernel of loops that writes into the target."""
    unfit = primitive.write is not None and primitive.lower is None
    amount = work(specs, (target,))
    if unfit or amount < least(primitive):
        return None
    if not churn.worth_loops(primitive, [target, *specs], params, amount):
        return None
    found = nests.nests_of(primitive, specs, params, (target,))
    if found is None:
        return None
    found = nests.without_copies(found)
    plan = nests.call_of(found, specs, (target,), False).inplace_plan(otherwise)
    guard = primitive.info.get("guard")
    return plan if guard is None else guarded_plan(plan, guard, params)


def guarded_plan(plan: Callable, guard: Callable, params: dict) -> Callable:
    """The plan after a look at the operands, since a kernel that fails has written by then."""
    def run(target, *operands):
        guard(target._array, *[x._array if isinstance(x, Tensor) else x for x in operands],
              **params)
        return plan(target, *operands)

    return run


def install() -> None:
    """Let native kernels take over; `FLAMBEAU_NATIVE=0` leaves everything to NumPy."""
    if os.environ.get("FLAMBEAU_NATIVE", "1") == "0":
        return
    plans.PROVIDERS.append(provider)
    plans.INPLACE_PROVIDERS.append(inplace_provider)
