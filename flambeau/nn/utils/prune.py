"""Pruning: a parameter becomes `<name>_orig` times a mask, recomputed before every forward.

`remove` makes it permanent. Methods rank single elements (unstructured) or whole slices along a
dimension (structured).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from flambeau.core.errors import ArgumentError, OpError, ValueRangeError, complaint
from flambeau.nn.modules.module import Module
from flambeau.nn.utils.convert_parameters import parameters_to_vector
from flambeau.tensor import Tensor, ones_like, topk
from flambeau.tensor.public import FUNCTIONS

rand = FUNCTIONS[""]["rand"]


class BasePruningMethod(ABC):
    """A way to choose a mask; a subclass writes `compute_mask` and sets PRUNING_TYPE."""

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Ones where `t` is kept; never where default_mask is 0."""

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter with pruned elements at zero."""
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune `module.<name>`; on top of earlier pruning if there was any."""
        method = cls(*args, **kwargs)
        method._tensor_name = name
        earlier = _hook(module, name)
        if earlier is not None:
            container = PruningContainer(earlier)
            container.add_pruning_method(method)
            method = container
        original = getattr(module, name)
        if importance_scores is not None and importance_scores.shape != original.shape:
            facts = {"scores": list(importance_scores.shape), "parameter": list(original.shape)}
            must = "importance_scores must have the shape of the parameter"
            raise AssertionError(complaint("prune", must, facts))
        default = ones_like(original)
        if earlier is not None:
            default = getattr(module, name + "_mask").detach().clone()
        scores = original if importance_scores is None else importance_scores
        mask = method.compute_mask(scores.detach(), default)
        if earlier is not None:
            _take_off(module, earlier)
        else:
            del module._parameters[name]
            module.register_parameter(name + "_orig", original)
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Tensor, default_mask: Any = None, importance_scores: Any = None) -> Tensor:
        """`t` with what this method would prune at zero."""
        default = ones_like(t) if default_mask is None else default_mask
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, default_mask=default)

    def remove(self, module: Module) -> None:
        """Make the pruning permanent: the parameter is a plain one again."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        delattr(module, name)
        original = module._parameters[name + "_orig"]
        original.data = weight.data
        del module._parameters[name + "_orig"], module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods, one after another; each prunes what the earlier ones left."""

    def __init__(self, *args: Any):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        methods = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        for method in methods:
            self._tensor_name = method._tensor_name
            self._pruning_methods += (
                method._pruning_methods if isinstance(method, PruningContainer) else (method,)
            )

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """One more, for the same parameter."""
        if not isinstance(method, BasePruningMethod):
            facts = {"got": type(method).__name__}
            raise ArgumentError(complaint("prune", "expects a BasePruningMethod", facts))
        if self._pruning_methods and method._tensor_name != self._tensor_name:
            facts = {"name": method._tensor_name, "expected": self._tensor_name}
            raise ValueRangeError(complaint("prune", "methods must prune one parameter", facts))
        self._tensor_name = method._tensor_name
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The last method's mask of what is left, joined with the earlier mask."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "global":
            raise OpError(complaint("prune", "global methods prune by global_unstructured"))
        kept: Any = mask == 1
        if method.PRUNING_TYPE == "structured":
            kept = _living_slices(mask, method.dim)  # type: ignore[attr-defined]
        joined = mask.clone()
        joined[kept] = method.compute_mask(t[kept], default_mask=mask[kept]).to(dtype=mask.dtype)
        return joined


def _living_slices(mask: Tensor, dim: int) -> tuple:
    """Selects the slices along `dim` that are not wholly pruned."""
    dim %= mask.dim()
    others = [d for d in range(mask.dim()) if d != dim]
    living = mask.sum(others) != 0 if others else mask != 0
    return (*(slice(None) for _ in range(dim)), living)


class Identity(BasePruningMethod):
    """Prunes nothing, and sets up mask and hook."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask as it was."""
        return default_mask


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Both masks."""
        return default_mask * self.mask.to(dtype=default_mask.dtype)


class RandomUnstructured(BasePruningMethod):
    """Prunes elements at random: `amount` as a count, or a share in [0, 1]."""

    def __init__(self, amount: float):
        self.amount = _checked_amount(amount)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with elements taken out at random."""
        mask = default_mask.clone()
        count = _count(self.amount, t.nelement())
        mask.view(-1)[topk(rand(t.nelement()), count).indices] = 0
        return mask


class L1Unstructured(BasePruningMethod):
    """Prunes the elements of least magnitude."""

    def __init__(self, amount: float):
        self.amount = _checked_amount(amount)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with the smallest elements taken out."""
        mask = default_mask.clone()
        count = _count(self.amount, t.nelement())
        if count:
            mask.view(-1)[topk(t.abs().view(-1), count, largest=False).indices] = 0
        return mask


class RandomStructured(BasePruningMethod):
    """Prunes slices along `dim` at random."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1):
        self.amount, self.dim = _checked_amount(amount), dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with slices taken out at random."""
        count = _count(self.amount, t.shape[self.dim])
        chances = rand(t.shape[self.dim])
        return _without(default_mask, topk(chances, count, largest=False).indices, self.dim)


class LnStructured(BasePruningMethod):
    """Prunes the slices along `dim` of least n-norm."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1):
        self.amount, self.n, self.dim = _checked_amount(amount), n, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask with the smallest slices taken out."""
        count = _count(self.amount, t.shape[self.dim])
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        norms = t.norm(p=self.n, dim=others) if others else t.abs()
        return _without(default_mask, topk(norms, count, largest=False).indices, self.dim)


def _without(mask: Tensor, slices: Tensor, dim: int) -> Tensor:
    kept = ones_like(mask)
    kept.index_fill_(dim % mask.dim(), slices, 0)
    return mask * kept


def _checked_amount(amount: Any) -> Any:
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        facts = {"amount": type(amount).__name__}
        raise ArgumentError(complaint("prune", "amount must be a number", facts))
    if amount < 0 or (not isinstance(amount, int) and amount > 1):
        must = "amount must be a count, or a share in [0, 1]"
        raise ValueRangeError(complaint("prune", must, {"amount": amount}))
    return amount


def _count(amount: Any, size: int) -> int:
    """How many of `size` to prune."""
    if not isinstance(amount, int):
        return round(amount * size)
    if amount > size:
        facts = {"amount": amount, "size": size}
        must = "amount must not exceed what can be pruned"
        raise ValueRangeError(complaint("prune", must, facts))
    return amount


def _hook(module: Module, name: str) -> BasePruningMethod | None:
    hooks = module._forward_pre_hooks.values()
    found = [h for h in hooks if isinstance(h, BasePruningMethod) and h._tensor_name == name]
    return found[0] if found else None


def _take_off(module: Module, method: BasePruningMethod) -> None:
    for key, hook in list(module._forward_pre_hooks.items()):
        if hook is method:
            del module._forward_pre_hooks[key]


def identity(module: Module, name: str) -> Module:
    """Set up mask and hook without pruning."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Prune elements at random."""
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Tensor | None = None
) -> Module:
    """Prune the elements of least magnitude."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Prune slices along `dim` at random."""
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: float,
    n: Any,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prune the slices along `dim` of least n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune by a given mask."""
    CustomFromMask.apply(module, name, mask=mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict | None = None,
    **kwargs: Any,
) -> None:
    """Prune elements of all these parameters as if they were one vector."""
    pairs = list(parameters)
    scores = importance_scores or {}
    tensors = [scores.get((m, n), getattr(m, n)).detach() for m, n in pairs]
    masks = [getattr(m, n + "_mask", ones_like(t)) for (m, n), t in zip(pairs, tensors)]
    container = PruningContainer()
    container._tensor_name = "temp"
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        facts = {"type": method.PRUNING_TYPE}
        raise ArgumentError(complaint("prune", "global pruning must be unstructured", facts))
    container.add_pruning_method(method)
    whole = container.compute_mask(parameters_to_vector(tensors), parameters_to_vector(masks))
    at = 0
    for (module, name), tensor in zip(pairs, tensors):
        mask = whole[at : at + tensor.numel()].view_as(tensor)
        custom_from_mask(module, name, mask=mask)
        at += tensor.numel()


def remove(module: Module, name: str) -> Module:
    """Make the pruning of `module.<name>` permanent."""
    method = _hook(module, name)
    if method is None:
        facts = {"name": name, "module": type(module).__name__}
        raise ValueRangeError(complaint("prune", "the parameter must have been pruned", facts))
    method.remove(module)
    _take_off(module, method)
    return module


def is_pruned(module: Module) -> bool:
    """Is a parameter of the module or of one below it pruned?"""
    return any(
        isinstance(hook, BasePruningMethod)
        for _, sub in module.named_modules()
        for hook in sub._forward_pre_hooks.values()
    )
