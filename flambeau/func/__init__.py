"""Function transforms: `grad`, `vjp`, `jvp`, `vmap` and what is made of them; `functional_call`."""

from flambeau.func.derivatives import grad, grad_and_value, jvp, linearize, vjp
from flambeau.func.functionalize import functionalize
from flambeau.func.jacobians import hessian, jacfwd, jacrev
from flambeau.func.modules import functional_call, stack_module_state
from flambeau.func.vmap import vmap

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
