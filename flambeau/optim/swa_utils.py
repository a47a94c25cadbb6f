"""Averages of a model's weights over training: stochastic weight averaging, and exponential.

equal:        avg = avg + (p - avg) / (n + 1)                  (Izmailov et al. 2018)
exponential:  avg = avg + (1 - decay) (p - avg)                (Polyak averaging)
"""

import math
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from itertools import chain
from typing import Any

from flambeau.autograd import no_grad
from flambeau.core.errors import ValueRangeError, complaint
from flambeau.nn import Module
from flambeau.nn.modules.batchnorm import _BatchNorm
from flambeau.optim.checks import require
from flambeau.optim.lr_scheduler.base import LRScheduler
from flambeau.optim.lr_scheduler.cyclic import per_group
from flambeau.optim.optimizer import Optimizer
from flambeau.tensor import Tensor
from flambeau.tensor.interop import tensor

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average = Callable[[Tensor, Tensor, Any], Tensor]
Averages = Callable[[list[Tensor], list[Tensor], Any], None]


def _mixed_(averages: list[Tensor], values: list[Tensor], share: float) -> None:
    """avg = avg + share (value - avg), in place; integers are truncated."""
    for average, value in zip(averages, values, strict=True):
        if average.is_floating_point() or average.is_complex():
            average.lerp_(value, share)
        else:
            average.copy_(average + (value - average) * share)


def _check_decay(decay: float) -> None:
    must = "decay must be in [0, 1]"
    require(0.0 <= decay <= 1.0, "exponential average", must, decay=decay)


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """An exponential average of lists of tensors, in place."""
    _check_decay(decay)

    @no_grad()
    def ema_update(averages: list[Tensor], values: list[Tensor], _: Any) -> None:
        _mixed_(averages, values, 1 - decay)

    return ema_update


def get_swa_multi_avg_fn() -> Averages:
    """An equal average of lists of tensors, in place."""

    @no_grad()
    def swa_update(averages: list[Tensor], values: list[Tensor], num_averaged: Any) -> None:
        _mixed_(averages, values, 1 / (float(num_averaged) + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """An exponential average of one tensor, as a new one."""
    _check_decay(decay)

    @no_grad()
    def ema_update(average: Tensor, value: Tensor, num_averaged: Any) -> Tensor:
        return decay * average + (1 - decay) * value

    return ema_update


def get_swa_avg_fn() -> Average:
    """An equal average of one tensor, as a new one."""

    @no_grad()
    def swa_update(average: Tensor, value: Tensor, num_averaged: Any) -> Tensor:
        return average + (value - average) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of `model` whose parameters are the average of those seen by `update_parameters`.

    avg_fn maps (average, value, count) to the new average; multi_avg_fn changes lists in place;
    the default is the equal average. use_buffers: average buffers as well, else copy the latest.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            must = "avg_fn and multi_avg_fn exclude each other"
            raise AssertionError(complaint("AveragedModel", must, {}, "Pass one of them."))
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's output."""
        return self.module(*args, **kwargs)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Take the weights of `model` into the average."""
        averages, values = self._averaged(self.module), self._averaged(model)
        values = [v.detach().to(a.device) for a, v in zip(averages, values, strict=True)]
        if int(self.n_averaged) == 0:
            for average, value in zip(averages, values, strict=True):
                average.copy_(value)
        else:
            self._average(averages, values)
        if not self.use_buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.copy_(theirs.detach().to(mine.device))
        self.n_averaged += 1

    def _averaged(self, model: Module) -> list[Tensor]:
        buffers: Iterator[Tensor] = model.buffers() if self.use_buffers else iter(())
        return [t.detach() for t in chain(model.parameters(), buffers)]

    def _average(self, averages: list[Tensor], values: list[Tensor]) -> None:
        if self.avg_fn is None:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, values, self.n_averaged)
            return
        for average, value in zip(averages, values, strict=True):
            average.copy_(self.avg_fn(average, value, self.n_averaged.to(average.device)))


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of every BatchNorm anew, by one pass over `loader`.

    Batches that are lists or tuples give their first member to the model.
    """
    norms = {m: m.momentum for m in model.modules() if isinstance(m, _BatchNorm)}
    if not norms:
        return
    was_training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
    for batch in loader:
        inputs = batch[0] if isinstance(batch, list | tuple) else batch
        model(inputs if device is None else inputs.to(device))
    for norm, momentum in norms.items():
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Anneals the rate to `swa_lr` in `anneal_epochs`, by a cosine or a line, and stays there."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = per_group(self, optimizer, "swa_lr", swa_lr)
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["swa_lr"] = rate
        must = "anneal_strategy must be 'cos' or 'linear'"
        known = anneal_strategy in ("cos", "linear")
        require(known, "SWALR", must, anneal_strategy=anneal_strategy)
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            must, facts = "anneal_epochs must be an integer of at least 0", {"got": anneal_epochs}
            raise ValueRangeError(complaint("SWALR", must, facts))
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group, rate in zip(self.optimizer.param_groups, self._rates(), strict=True):
            final = group["swa_lr"]
            start = final if before == 1 else (rate - before * final) / (1 - before)
            rates.append(final * now + start * (1 - now))
        return rates

    def _share(self, step: int) -> float:
        """How much of the way to `swa_lr` is done after `step` steps."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t
