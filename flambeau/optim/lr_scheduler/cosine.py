"""Schedulers along a half cosine (Loshchilov and Hutter, SGDR, 2016)."""

import math
from typing import Any

from flambeau.optim.checks import require
from flambeau.optim.lr_scheduler.base import LRScheduler
from flambeau.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """lr = eta_min + (base_lr - eta_min) (1 + cos(pi epoch / T_max)) / 2."""

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        epoch, period, low = self.last_epoch, self.T_max, self.eta_min
        rates = self._rates()
        if self._is_initial:
            return rates
        if (epoch - 1 - period) % (2 * period) == 0:
            # The rate before was eta_min, which no factor leads away from.
            rise = (1 - math.cos(math.pi / period)) / 2
            pairs = zip(self.base_lrs, rates, strict=True)
            return [rate + (base - low) * rise for base, rate in pairs]
        now = 1 + math.cos(math.pi * epoch / period)
        before = 1 + math.cos(math.pi * (epoch - 1) / period)
        return [now / before * (rate - low) + low for rate in rates]

    def _get_closed_form_lr(self) -> list[Any]:
        wave = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that starts again after T_0 epochs, then T_0 T_mult, T_0 T_mult^2, ...

    `step(epoch)` takes fractions: `step(epoch + i / len(loader))` anneals within an epoch.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        name = "CosineAnnealingWarmRestarts"
        require(isinstance(T_0, int) and T_0 > 0, name, "T_0 must be a positive integer", T_0=T_0)
        whole = isinstance(T_mult, int) and T_mult >= 1
        require(whole, name, "T_mult must be an integer of at least 1", T_mult=T_mult)
        require(isinstance(eta_min, int | float), name, "eta_min must be a number", eta_min=eta_min)
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        wave = 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * wave / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Move on by one epoch, or to `epoch`, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            must = "epoch must be at least 0"
            require(epoch >= 0, "CosineAnnealingWarmRestarts.step", must, epoch=epoch)
            self.T_cur, self.T_i = self._place(epoch)
        self.last_epoch = math.floor(epoch)
        self._set_rates(self.get_lr)

    def _place(self, epoch: float) -> tuple[float, int]:
        """How far `epoch` is into its period, and that period's length."""
        if epoch < self.T_0:
            return epoch, self.T_0
        if self.T_mult == 1:
            return epoch % self.T_0, self.T_0
        n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
        start = self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
        return epoch - start, self.T_0 * self.T_mult**n
