"""Schedulers made of schedulers: one after another, or all at once."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from flambeau.core.errors import ArgumentError, complaint
from flambeau.optim.checks import require
from flambeau.optim.lr_scheduler.base import LRScheduler, copied
from flambeau.optim.lr_scheduler.plateau import ReduceLROnPlateau
from flambeau.optim.optimizer import Optimizer


class _Composed(LRScheduler):
    """What both share: a list of schedulers on one optimizer, checkpointed together."""

    _schedulers: Sequence[LRScheduler]

    def _check_members(self, schedulers: Sequence[Any], optimizer: Any) -> None:
        name = type(self).__name__
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                facts = {"type": type(scheduler).__name__}
                raise ArgumentError(complaint(name, f"schedulers[{i}] must be a scheduler", facts))
            require(
                not isinstance(scheduler, ReduceLROnPlateau),
                name,
                "ReduceLROnPlateau cannot be a member, as its step needs a metric",
                "Step it beside this one.",
                index=i,
            )
            require(
                scheduler.optimizer is optimizer,
                name,
                "all schedulers must act on the same optimizer",
                index=i,
                scheduler=type(scheduler).__name__,
            )

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the members' own state dicts."""
        state = super().state_dict()
        members = state.pop("_schedulers")
        state["_schedulers"] = [member.state_dict() for member in members]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a `state_dict`, and hand the members theirs."""
        state = dict(state_dict)
        for member, own in zip(self._schedulers, state.pop("_schedulers"), strict=True):
            member.load_state_dict(own)
        super().load_state_dict(state)


class SequentialLR(_Composed):
    """`schedulers[i]` acts from `milestones[i - 1]` on, each counting its epochs from 0."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        require(len(schedulers) > 0, "SequentialLR", "schedulers must not be empty")
        self._check_members(schedulers, optimizer)
        require(
            len(schedulers) == len(milestones) + 1,
            "SequentialLR",
            "there must be one scheduler more than milestones",
            schedulers=len(schedulers),
            milestones=len(milestones),
        )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group["lr"] = copied(group["initial_lr"])
        self.recursive_undo()
        self._schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Take back the first step that every member made when it was constructed."""
        scheds = self if sched is None else sched
        if hasattr(scheds, "_schedulers"):
            for member in scheds._schedulers:
                self.recursive_undo(member)
        elif hasattr(scheds, "last_epoch"):
            scheds.last_epoch -= 1
            if hasattr(scheds, "_step_count"):
                scheds._step_count -= 1

    def step(self) -> None:  # type: ignore[override]
        """Move to the next epoch."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    """All schedulers step together, each multiplying what the one before left."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        require(len(schedulers) > 0, "ChainedScheduler", "schedulers must not be empty")
        optimizer = optimizer or schedulers[0].optimizer
        self._check_members(schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = self._rates()

    def step(self) -> None:  # type: ignore[override]
        """Step every member."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()
