"""`LRScheduler`: sets the learning rate of every parameter group, once an epoch (or a step).

A scheduler has up to two forms. `get_lr` is the chainable one: it multiplies the rate that is
there, so that several schedulers can act on one optimizer. `_get_closed_form_lr`, where it exists,
gives the rate of any epoch from `base_lrs` alone.
"""

import warnings
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any

from flambeau.core.errors import ArgumentError, UnsupportedError, complaint
from flambeau.optim.optimizer import Optimizer
from flambeau.tensor import Tensor

Group = dict[str, Any]


class LRScheduler:
    """Base of all schedulers; a subclass defines `get_lr`, the new rate of each group.

    Construct it after the optimizer; call `step` after `optimizer.step`. `last_epoch` other than
    -1 resumes: then every group must hold `initial_lr`.
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(self, optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    complaint(
                        type(self).__name__,
                        f"param_groups[{i}] must hold initial_lr to resume",
                        {"last_epoch": last_epoch},
                        "Load the optimizer's state_dict before, or start with last_epoch=-1.",
                    )
                )
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._is_initial = False
        self._get_lr_called_within_step = False
        self._last_lr = self._rates()
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the rates of the first epoch."""
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_last_lr(self) -> list[Any]:
        """The rates that this scheduler set last."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates of `last_epoch`, from those now in the groups; called by `step`."""
        facts = {"class": type(self).__name__}
        raise UnsupportedError(complaint("get_lr", "a subclass must define it", facts))

    def step(self, epoch: int | None = None) -> None:
        """Move to the next epoch, or (deprecated) to `epoch` by the closed form."""
        if self._step_count == 1 and not self.optimizer._opt_called:
            warnings.warn(
                "lr_scheduler.step: optimizer.step must come first in an epoch, or the first rate "
                "is skipped; got none so far. Call optimizer.step() before it.",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(
                "lr_scheduler.step: the argument epoch is deprecated. Call step() once an epoch.",
                UserWarning,
                stacklevel=2,
            )
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        if epoch is None:
            self.last_epoch += 1
            self._set_rates(self.get_lr)
        else:
            self.last_epoch = epoch
            self._set_rates(getattr(self, "_get_closed_form_lr", self.get_lr))

    def _set_rates(self, values: Callable[[], list[Any]]) -> None:
        self._get_lr_called_within_step = True
        try:
            rates = values()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_option(group, "lr", rate)
        self._last_lr = self._rates()

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "get_lr: it advances the rate, for step alone. Call get_last_lr() to read it.",
                UserWarning,
                stacklevel=3,
            )

    def _rates(self) -> list[Any]:
        """The rates now in the groups."""
        return [copied(group["lr"]) for group in self.optimizer.param_groups]

    def _scaled(self, factor: float) -> list[Any]:
        return [rate * factor for rate in self._rates()]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict`."""
        self.__dict__.update(state_dict)


def check_optimizer(scheduler: object, optimizer: object) -> None:
    """A scheduler acts on an `Optimizer`."""
    if not isinstance(optimizer, Optimizer):
        name, facts = type(scheduler).__name__, {"optimizer": type(optimizer).__name__}
        raise ArgumentError(complaint(name, "optimizer must be an Optimizer", facts))


def set_option(group: Group, key: str, value: Any) -> None:
    """Set an option; one that is a tensor is filled, so that a captured step sees the change."""
    if isinstance(group[key], Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def callables_out(functions: Sequence[Callable | None]) -> list[dict[str, Any] | None]:
    """What a checkpoint keeps of functions: of callable objects the attributes, else None."""
    plain = (FunctionType, BuiltinFunctionType, type(None))
    return [None if isinstance(f, plain) else dict(vars(f)) for f in functions]


def callables_in(
    functions: Sequence[Callable | None], saved: Sequence[dict[str, Any] | None]
) -> None:
    """Give callable objects back the attributes that `callables_out` kept."""
    for function, attributes in zip(functions, saved, strict=True):
        if attributes is not None:
            vars(function).update(attributes)
