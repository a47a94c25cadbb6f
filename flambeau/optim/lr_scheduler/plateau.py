"""`ReduceLROnPlateau`: the rate falls when a measured quantity stops getting better."""

from typing import Any

from flambeau.optim.checks import require
from flambeau.optim.lr_scheduler.base import LRScheduler, check_optimizer, set_option
from flambeau.optim.optimizer import Optimizer


class ReduceLROnPlateau(LRScheduler):
    """lr = max(lr * factor, min_lr) after more than `patience` epochs without improvement.

    mode: "min" or "max" of the metric is good; threshold counts relative ("rel") or absolute
    ("abs"); cooldown: epochs to wait after a reduction; changes below eps are not made.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | list[float] = 0,
        eps: float = 1e-8,
    ) -> None:
        name = "ReduceLROnPlateau"
        require(factor < 1.0, name, "factor must be below 1", factor=factor)
        self.factor = factor
        check_optimizer(self, optimizer)
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, list | tuple):
            must = "min_lr must hold one value per parameter group"
            require(len(min_lr) == groups, name, must, given=len(min_lr), groups=groups)
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * groups
        require(mode in ("min", "max"), name, "mode must be 'min' or 'max'", mode=mode)
        must = "threshold_mode must be 'rel' or 'abs'"
        require(threshold_mode in ("rel", "abs"), name, must, threshold_mode=threshold_mode)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = self._rates()
        self.mode_worse = float("inf") if mode == "min" else -float("inf")
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self) -> None:
        """Forget what was measured."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take in this epoch's metric and reduce the rate when it is due."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._rates()

    def _is_better(self, a: float, best: float) -> bool:
        sign = -1 if self.mode == "min" else 1
        if self.threshold_mode == "abs":
            bar = best + sign * self.threshold
        else:
            bar = best * (1 + sign * self.threshold)
        return a < bar if self.mode == "min" else a > bar

    def _reduce_lr(self) -> None:
        self._extend_min_lrs()
        for group, smallest in zip(self.optimizer.param_groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, smallest)
            if old - new > self.eps:
                set_option(group, "lr", new)

    def _extend_min_lrs(self) -> None:
        """Groups added since construction get the default bound."""
        missing = len(self.optimizer.param_groups) - len(self.min_lrs)
        must = "min_lr must hold one value per parameter group"
        known = missing == 0 or self.default_min_lr is not None
        require(known, "ReduceLROnPlateau", must, "Pass one number.", given=len(self.min_lrs))
        self.min_lrs += [self.default_min_lr or 0.0] * missing

    @property
    def in_cooldown(self) -> bool:
        """Whether the wait after a reduction is still on."""
        return self.cooldown_counter > 0
