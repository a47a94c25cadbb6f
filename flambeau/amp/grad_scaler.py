"""`GradScaler`: multiplies the loss so that small float16 gradients do not vanish.

The scale halves when a gradient overflows, and that step is skipped; it doubles after
`growth_interval` steps without overflow (Micikevicius et al. 2017). An optimizer goes through
READY -> UNSCALED -> STEPPED between two calls of `update`.
"""

import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any

from flambeau.autograd import no_grad
from flambeau.core.dtype import float16, float32, int32
from flambeau.core.errors import OpError, ValueRangeError, complaint
from flambeau.optim import Optimizer
from flambeau.tensor import Tensor, full, isfinite, stack, where


class OptState(Enum):
    """How far an optimizer is since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _assert(holds: object, name: str, must: str, hint: str = "", **facts: object) -> None:
    if not holds:
        raise AssertionError(complaint(f"GradScaler.{name}", must, facts, hint))


def step_unless(found: list[Tensor], optimizer: Optimizer, args: tuple, kwargs: dict) -> Any:
    """`optimizer.step()`, unless one of the numbers is not zero."""
    if any(value.item() for value in found):
        return None
    return optimizer.step(*args, **kwargs)


class GradScaler:
    """Scales losses, unscales gradients, skips steps with infinities or NaN, adapts the scale."""

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled and _usable(device)
        if not self._enabled:
            return
        _assert(growth_factor > 1.0, "__init__", "growth_factor must be above 1", got=growth_factor)
        below = backoff_factor < 1.0
        _assert(below, "__init__", "backoff_factor must be below 1", got=backoff_factor)
        self._init_scale = init_scale
        self._scale: Any = None
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Any = None
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(_fresh)

    def _started(self, device: Any) -> Tensor:
        """The scale, made on the first use."""
        if self._scale is None:
            self._scale = full((), self._init_scale, dtype=float32, device=device)
            tracker = self._init_growth_tracker
            self._growth_tracker = full((), tracker, dtype=int32, device=device)
        return self._scale

    def _needed(self, name: str) -> Tensor:
        hint = "Call scaler.scale(loss) earlier in the iteration."
        _assert(self._scale is not None, name, "a loss must have been scaled", hint)
        return self._scale

    def scale(self, outputs: Any) -> Any:
        """The outputs (a tensor, or tensors in any iterable) times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._started(outputs.device).to(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled
        must, facts = "outputs must be tensors", {"outputs": type(outputs).__name__}
        raise ValueRangeError(complaint("GradScaler.scale", must, facts))

    @no_grad()
    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients by the scale in place, once per update, before clipping them."""
        if not self._enabled:
            return
        scale = self._needed("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is not OptState.READY:
            must = "unscale_ comes once an update, before step"
            facts = {"stage": state["stage"].name}
            raise OpError(complaint("GradScaler.unscale_", must, facts, "Call update() first."))
        state["found_inf_per_device"] = self._unscaled(optimizer, 1.0 / scale.item())
        state["stage"] = OptState.UNSCALED

    def _unscaled(self, optimizer: Optimizer, inverse: float) -> dict[Any, Tensor]:
        """Multiply the gradients by `inverse`; 1.0 for each device where one was not finite."""
        finite: dict[Any, list[Tensor]] = {}
        for group in optimizer.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if grad.dtype is float16:
                    must, hint = "gradients must not be float16", "Keep parameters in float32."
                    facts = {"dtype": grad.dtype}
                    raise ValueRangeError(complaint("GradScaler.unscale_", must, facts, hint))
                finite.setdefault(grad.device, []).append(isfinite(grad).all())
                grad.mul_(inverse)
        return {
            device: stack(flags).all().logical_not().to(float32)
            for device, flags in finite.items()
        }

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step()`, unless a gradient is infinite or NaN; unscales first if needed."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            must = "closures are not supported, as a skipped step could not call them"
            raise OpError(complaint("GradScaler.step", must))
        self._needed("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            must, hint = "step comes once an update", "Call update() first."
            raise OpError(complaint("GradScaler.step", must, None, hint))
        if state["stage"] is OptState.READY:
            self.unscale_(optimizer)
        found = state["found_inf_per_device"]
        _assert(found, "step", "the optimizer must have gradients", "Call backward() first.")
        result = step_unless(list(found.values()), optimizer, args, kwargs)
        state["stage"] = OptState.STEPPED
        return result

    @no_grad()
    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Adapt the scale after all optimizers stepped, or set it to `new_scale`."""
        if not self._enabled:
            return
        scale = self._needed("update")
        if new_scale is None:
            self._adapt(scale)
        elif isinstance(new_scale, Tensor):
            one = new_scale.numel() == 1 and not new_scale.requires_grad
            _assert(one, "update", "new_scale must be one number without grad", got=new_scale)
            scale.copy_(new_scale.reshape(()))
        else:
            scale.fill_(new_scale)
        self._per_optimizer_states = defaultdict(_fresh)

    def _adapt(self, scale: Tensor) -> None:
        found = [
            value
            for state in self._per_optimizer_states.values()
            for value in state["found_inf_per_device"].values()
        ]
        hint = "Call step() or unscale_() before update()."
        _assert(found, "update", "gradients must have been checked since the last one", hint)
        overflow = stack(list(found)).any()
        count, scaled = self._growth_tracker + 1, scale * self._growth_factor
        due = (count == self._growth_interval).logical_and(overflow.logical_not())
        grown = where(isfinite(scaled), scaled, scale)
        kept = where(overflow, scale * self._backoff_factor, scale)
        scale.copy_(where(due, grown, kept))
        self._growth_tracker.copy_(where(due.logical_or(overflow), 0, count))

    def get_scale(self) -> float:
        """The scale as a number (1.0 when disabled)."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_growth_tracker(self) -> int:
        """Steps without overflow since the scale last changed."""
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker.item())

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by to grow."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the scale is multiplied by to grow."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the scale is multiplied by after an overflow."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Steps without overflow until the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of steps without overflow until the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether this scaler does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Scale, factors and tracker as numbers; empty when disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict`; nothing happens when disabled."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            must = "the state dict must not be empty"
            hint = "It may come from a disabled scaler."
            raise OpError(complaint("GradScaler.load_state_dict", must, None, hint))
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            between = len(self._per_optimizer_states) == 0
            must = "pickle a scaler at the end of an iteration, after update()"
            _assert(between, "__getstate__", must)
            state["_init_scale"] = self.get_scale()
            state["_init_growth_tracker"] = self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None
        return state


def _usable(device: str) -> bool:
    """Whether the device is there; a scaler for a missing one does nothing, with a warning."""
    if device == "cpu":
        return True
    warnings.warn(
        f"GradScaler: device {device!r} is not available; the scaler is disabled. "
        "Pass device='cpu'.",
        UserWarning,
        stacklevel=3,
    )
    return False
