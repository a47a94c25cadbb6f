"""DataLoader: batches from a dataset, read in place or by workers, in a reproducible order."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from flambeau.core.errors import ArgumentError, ValueRangeError, complaint
from flambeau.data.collate import default_collate, default_convert
from flambeau.data.dataset import Dataset, IterableDataset
from flambeau.data.iterate import PrefetchIterator, SerialIterator
from flambeau.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from flambeau.random import Generator

T_co = TypeVar("T_co", covariant=True)

_FIXED = {"batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"}


class DataLoader(Generic[T_co]):
    """Iterates over a dataset in batches.

    With `batch_size=None` and no `batch_sampler`, samples come as they are, unbatched. With
    `num_workers > 0` batches are read ahead, `prefetch_factor` a worker, by processes or, with
    `worker_type="thread"` (our extension), by threads that share the dataset. The order of batches
    is that of `num_workers=0`, unless `in_order` is false. `timeout` in seconds, 0 for none.
    `generator` gives the base seed of the workers and the order of shuffling.
    """

    dataset: Dataset[T_co]

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler[list] | Iterable[list] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        worker_type: str = "process",
    ):
        self._check_workers(num_workers, timeout, prefetch_factor, persistent_workers, worker_type)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.worker_type = worker_type
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.generator = generator
        self.persistent_workers = persistent_workers
        self._iterable = isinstance(dataset, IterableDataset)
        self._iterator: PrefetchIterator | None = None
        self._length: int | None = None
        self._choose_order(batch_size, shuffle, sampler, batch_sampler, drop_last)
        default = default_collate if self._batched else default_convert
        self.collate_fn = default if collate_fn is None else collate_fn
        self._complete = True
        self.check_worker_number_rationality()

    @staticmethod
    def _check_workers(
        num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool, kind: str
    ) -> None:
        _require(num_workers >= 0, "num_workers option should be non-negative",
                 dict(num_workers=num_workers), "Use num_workers=0 to disable multiprocessing.")
        _require(timeout >= 0, "timeout option should be non-negative", dict(timeout=timeout))
        _require(num_workers > 0 or prefetch_factor is None,
                 "prefetch_factor option could only be specified in multiprocessing",
                 dict(num_workers=num_workers, prefetch_factor=prefetch_factor),
                 "Let num_workers > 0 to enable multiprocessing, otherwise leave prefetch_factor "
                 "at None.")
        _require(prefetch_factor is None or prefetch_factor >= 0,
                 "prefetch_factor option should be non-negative",
                 dict(prefetch_factor=prefetch_factor))
        _require(num_workers > 0 or not persistent,
                 "persistent_workers option needs num_workers > 0", dict(num_workers=num_workers))
        _require(kind in ("process", "thread"), "worker_type should be 'process' or 'thread'",
                 dict(worker_type=repr(kind)))

    def _choose_order(
        self,
        batch_size: int | None,
        shuffle: bool | None,
        sampler: Any,
        batch_sampler: Any,
        drop_last: bool,
    ) -> None:
        if self._iterable:
            _refuse_order_of_stream(shuffle, sampler, batch_sampler)
        _require(sampler is None or not shuffle,
                 "sampler option is mutually exclusive with shuffle", dict(shuffle=shuffle))
        if batch_sampler is not None:
            _require(batch_size == 1 and not shuffle and sampler is None and not drop_last,
                     "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                     "sampler, and drop_last",
                     dict(batch_size=batch_size, shuffle=shuffle, drop_last=drop_last))
            batch_size = None
        elif batch_size is None:
            _require(not drop_last, "batch_size=None option disables auto-batching and is mutually "
                     "exclusive with drop_last", dict(drop_last=drop_last))
        if sampler is None:
            sampler = self._default_sampler(shuffle)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler

    def _default_sampler(self, shuffle: bool | None) -> Any:
        if self._iterable:
            return _Endless()
        if shuffle:
            return RandomSampler(self.dataset, generator=self.generator)  # type: ignore[arg-type]
        return SequentialSampler(self.dataset)  # type: ignore[arg-type]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and "_complete" in self.__dict__:
            raise ValueRangeError(complaint(
                "DataLoader",
                f"{name} attribute should not be set after DataLoader is initialized",
                {name: value}, "Make a new DataLoader."))
        super().__setattr__(name, value)

    @property
    def _batched(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._batched else self.sampler

    @property
    def multiprocessing_context(self) -> Any:
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        """A context of `multiprocessing`, or the name of a start method; None for the default."""
        if context is not None:
            context = _start_context(context, self.num_workers)
        self._context = context

    def _start_context(self) -> Any:
        import multiprocessing

        return multiprocessing.get_context() if self._context is None else self._context

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers == 0:
            return SerialIterator(self)
        if not self.persistent_workers:
            return PrefetchIterator(self)
        if self._iterator is None or self._iterator.closed:
            self._iterator = PrefetchIterator(self)
        else:
            self._iterator.restart()
        return self._iterator

    def __len__(self) -> int:
        """Batches in an epoch; of an iterable dataset, what its own `__len__` promises."""
        if not self._iterable:
            return len(self._index_sampler)
        length = self._length = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def _check_length(self, yielded: int) -> None:
        """Warn when a stream gives more batches than its `__len__` has promised someone."""
        if self._iterable and self._length is not None and yielded > len(self):
            warnings.warn(
                f"Length of IterableDataset {self.dataset} was reported to be {self._length} "
                f"(when accessing len(dataloader)), but {yielded} batches have been fetched. With "
                "num_workers > 0, let each worker read its own part: see get_worker_info().",
                stacklevel=4)

    def _pin(self, batch: Any) -> Any:
        return batch

    def check_worker_number_rationality(self) -> None:
        """Warn when there are more worker processes than CPUs that this process may use."""
        if self.num_workers == 0 or self.worker_type == "thread":
            return
        cpus = (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity")
                else os.cpu_count() or 1)
        if self.num_workers > cpus:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our "
                f"suggested max number of worker in current system is {cpus}: more may make "
                "loading slow, or even freeze.", stacklevel=3)


class _Endless:
    """The sampler of a stream: as many placeholders as anyone asks for."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


def _refuse_order_of_stream(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    given = dict(shuffle=shuffle or None, sampler=sampler, batch_sampler=batch_sampler)
    for name, value in given.items():
        _require(value is None, f"an IterableDataset gives the order itself, expected unspecified "
                 f"{name} option", {name: value}, "Shuffle inside the dataset.")


def _start_context(context: Any, num_workers: int) -> Any:
    import multiprocessing

    _require(num_workers > 0, "multiprocessing_context can only be used with multi-process loading "
             "(num_workers > 0)", dict(num_workers=num_workers))
    if isinstance(context, str):
        known = multiprocessing.get_all_start_methods()
        _require(context in known, "multiprocessing_context option should specify a valid start "
                 f"method in {known}", dict(multiprocessing_context=repr(context)))
        return multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise ArgumentError(complaint(
            "DataLoader", "multiprocessing_context option should be a valid context object or a "
            "string specifying the start method", dict(multiprocessing_context=context)))
    return context


def _require(holds: bool, must: str, got: dict, hint: str = "") -> None:
    if not holds:
        raise ValueRangeError(complaint("DataLoader", must, got, hint))
