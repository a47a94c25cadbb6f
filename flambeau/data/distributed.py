"""DistributedSampler: each process of a group reads its own part of a dataset."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sized

from flambeau.core.errors import ValueRangeError, complaint
from flambeau.data.sampler import Sampler
from flambeau.random import Generator
from flambeau.random.functions import randperm


class DistributedSampler(Sampler[int]):
    """Indices rank, rank + num_replicas, ... of one order that all ranks share.

    The order is a permutation seeded with `seed + epoch` (call `set_epoch` before each epoch), or
    0, 1, 2, ... without `shuffle`. So that every rank gets as many, the order is repeated from its
    start, or cut with `drop_last`.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        self.dataset = dataset
        self.num_replicas = _group().get_world_size() if num_replicas is None else num_replicas
        self.rank = _group().get_rank() if rank is None else rank
        if not 0 <= self.rank < self.num_replicas:
            raise ValueRangeError(complaint(
                "DistributedSampler",
                f"rank should be in the interval [0, {self.num_replicas - 1}]",
                dict(rank=self.rank)))
        self.shuffle = shuffle
        self.seed = seed
        self.drop_last = drop_last
        self.epoch = 0

    @property
    def num_samples(self) -> int:
        n, parts = len(self.dataset), self.num_replicas
        return n // parts if self.drop_last else -(-n // parts)

    @property
    def total_size(self) -> int:
        return self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        order = self._order()
        if order and not self.drop_last:
            order *= -(-self.total_size // len(order))
        yield from order[: self.total_size][self.rank :: self.num_replicas]

    def _order(self) -> list[int]:
        n = len(self.dataset)
        if not self.shuffle:
            return list(range(n))
        generator = Generator()
        generator.manual_seed(self.seed + self.epoch)
        return randperm(n, generator=generator).tolist()

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the permutation of this epoch; all ranks must pass the same number."""
        self.epoch = epoch


def _group():
    """flambeau.distributed with a process group in it.

    It lies above this layer, so it is looked up among the loaded modules: a program that has made
    a group has loaded it.
    """
    distributed = sys.modules.get("flambeau.distributed")
    if distributed is None or not distributed.is_initialized():
        raise ValueRangeError(complaint(
            "DistributedSampler", "num_replicas and rank must be given, or a process group exist",
            hint="Default process group has not been initialized, please make sure to call "
            "init_process_group."))
    return distributed
