"""Schedulers whose rate rises and falls, with momentum moving the other way (Smith 2015, 2017)."""

import math
from collections.abc import Callable
from typing import Any

from flambeau.optim.checks import require
from flambeau.optim.lr_scheduler.base import (
    Group,
    LRScheduler,
    callables_in,
    callables_out,
    check_optimizer,
    set_option,
)
from flambeau.optim.optimizer import Optimizer


def per_group(scheduler: LRScheduler, optimizer: Optimizer, key: str, value: Any) -> list[Any]:
    """One value per parameter group: a list as it is, anything else repeated."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, list | tuple):
        return [value] * groups
    name, must = type(scheduler).__name__, f"{key} must hold one value per parameter group"
    require(len(value) == groups, name, must, given=len(value), groups=groups)
    return list(value)


def uses_beta1(scheduler: LRScheduler, optimizer: Optimizer) -> bool:
    """Whether the momentum is the first of `betas`; ValueError when the optimizer has none."""
    require(
        "momentum" in optimizer.defaults or "betas" in optimizer.defaults,
        type(scheduler).__name__,
        "cycle_momentum needs an optimizer with momentum or betas",
        "Pass cycle_momentum=False.",
        optimizer=type(optimizer).__name__,
    )
    return "betas" in optimizer.defaults


def set_momentum(group: Group, momentum: float, beta1: bool) -> None:
    """Set a group's momentum, which Adam's relatives call betas[0]."""
    if beta1:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


class CyclicLR(LRScheduler):
    """lr = base_lr + (max_lr - base_lr) * triangle(epoch) * scale.

    scale is 1 ("triangular"), halves every cycle ("triangular2"), is gamma ** epoch ("exp_range"),
    or is `scale_fn` of the cycle or of the epoch, as `scale_mode` says. Step it once a batch.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(self, optimizer)
        self.optimizer = optimizer
        bases = per_group(self, optimizer, "base_lr", base_lr)
        if last_epoch == -1:
            for group, base in zip(optimizer.param_groups, bases, strict=True):
                set_option(group, "lr", base)
        self.max_lrs = per_group(self, optimizer, "max_lr", max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        modes = ("triangular", "triangular2", "exp_range")
        must = f"mode must be one of {modes}, or scale_fn be given"
        require(mode in modes or scale_fn is not None, "CyclicLR", must, mode=mode)
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = _SCALE_MODES[mode] if scale_fn is None else scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = bases

    def _start_momentum(self, base: Any, largest: Any, last_epoch: int) -> None:
        optimizer = self.optimizer
        self.use_beta1 = uses_beta1(self, optimizer)
        self.base_momentums = per_group(self, optimizer, "base_momentum", base)
        self.max_momentums = per_group(self, optimizer, "max_momentum", largest)
        if last_epoch != -1:
            return
        triples = zip(optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
        for group, low, high in triples:
            set_momentum(group, high, self.use_beta1)
            group["max_momentum"] = high
            group["base_momentum"] = low

    def scale_fn(self, x: float) -> float:
        """The height of the triangle in cycle (or epoch) `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        rising = place <= self.step_ratio
        height = place / self.step_ratio if rising else (place - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            triples = zip(
                self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True
            )
            for group, low, high in triples:
                set_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        pairs = zip(self.base_lrs, self.max_lrs, strict=True)
        return [base + (largest - base) * height * scale for base, largest in pairs]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of `scale_fn`, the attributes of a callable object."""
        state = super().state_dict()
        (state["_scale_fn_custom"],) = callables_out([state.pop("_scale_fn_custom")])
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict`."""
        state = dict(state_dict)
        callables_in([self._scale_fn_custom], [state.pop("_scale_fn_custom")])
        super().load_state_dict(state)


_SCALE_MODES = {"triangular": "cycle", "triangular2": "cycle", "exp_range": "iterations"}


class OneCycleLR(LRScheduler):
    """One cycle over the whole training: up to max_lr, then down far below the first rate.

    Runs from max_lr / div_factor over max_lr to max_lr / (div_factor final_div_factor) in
    `total_steps`, or `epochs * steps_per_epoch`, with the peak at `pct_start`. Step it every batch.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        check_optimizer(self, optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        in_unit = isinstance(pct_start, float) and 0 <= pct_start <= 1
        must = "pct_start must be a float in [0, 1]"
        require(in_unit, "OneCycleLR", must, pct_start=pct_start)
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        must = "anneal_strategy must be 'cos' or 'linear'"
        known = anneal_strategy in ("cos", "linear")
        require(known, "OneCycleLR", must, anneal_strategy=anneal_strategy)
        self._anneal_func_type = anneal_strategy
        peaks = per_group(self, optimizer, "max_lr", max_lr)
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, peaks, strict=True):
                group["initial_lr"] = peak / div_factor
                group["max_lr"] = peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._start_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _start_momentum(self, base: Any, largest: Any, last_epoch: int) -> None:
        optimizer = self.optimizer
        self.use_beta1 = uses_beta1(self, optimizer)
        lows = per_group(self, optimizer, "base_momentum", base)
        highs = per_group(self, optimizer, "max_momentum", largest)
        if last_epoch == -1:
            for group, low, high in zip(optimizer.param_groups, lows, highs, strict=True):
                set_momentum(group, high, self.use_beta1)
                group["max_momentum"] = high
                group["base_momentum"] = low

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        must = "the schedule has an end"
        within = self.last_epoch <= self.total_steps
        hint = "Give a larger total_steps, or stop stepping."
        require(within, "OneCycleLR", must, hint, step=self.last_epoch, total=self.total_steps)
        phase, done = self._place()
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], done))
            if self.cycle_momentum:
                start, end = group[phase["start_momentum"]], group[phase["end_momentum"]]
                set_momentum(group, self._between(start, end, done), self.use_beta1)
        return rates

    def _place(self) -> tuple[dict[str, Any], float]:
        """The phase that this step is in, and the share of it that is done."""
        start = 0.0
        for phase in self._schedule_phases:
            if self.last_epoch <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            start = phase["end_step"]
        return phase, (self.last_epoch - start) / (phase["end_step"] - start)

    def _between(self, start: float, end: float, done: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * done + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * done) + 1)


def _total_steps(total: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    given: dict[str, Any] = {
        "total_steps": total,
        "epochs": epochs,
        "steps_per_epoch": steps_per_epoch,
    }
    if total is not None:
        given = {"total_steps": total}
    for key, value in given.items():
        if value is not None:
            whole = isinstance(value, int) and value > 0
            require(whole, "OneCycleLR", f"{key} must be a positive integer", "", **{key: value})
    if total is not None:
        return total
    must = "either total_steps, or epochs and steps_per_epoch, must be given"
    require(epochs is not None and steps_per_epoch is not None, "OneCycleLR", must, **given)
    return (epochs or 0) * (steps_per_epoch or 0)


def _phases(total: int, peak: float, three_phase: bool) -> list[dict[str, Any]]:
    """Rise and fall, or rise, equal fall to the first rate, and annihilation."""
    keys = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    rise = (float(peak * total) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    fall = (total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")
    back = (float(2 * peak * total) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
    rest = (total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")
    rows = [rise, back, rest] if three_phase else [rise, fall]
    return [dict(zip(keys, row, strict=True)) for row in rows]
