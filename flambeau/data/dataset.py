"""Datasets: where samples come from, and how datasets are put together and taken apart.

A map-style dataset answers `dataset[index]` and `len(dataset)`; an iterable one only `iter`.
A dataset may also answer `__getitems__(indices)` with the list of samples, read in one go.
"""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from flambeau.core.errors import (
    FlambeauError,
    IndexOutOfRange,
    UnsupportedError,
    ValueRangeError,
    complaint,
)
from flambeau.random import Generator, default_generator
from flambeau.random.functions import randperm
from flambeau.tensor import Tensor

T_co = TypeVar("T_co", covariant=True)


class DatasetError(FlambeauError, AssertionError):
    """Datasets or tensors do not fit together (PyTorch asserts here)."""


class Dataset(Generic[T_co]):
    """Base class of map-style datasets: define `__getitem__`, and `__len__` for most samplers."""

    def __getitem__(self, index: Any) -> T_co:
        raise UnsupportedError(
            complaint(type(self).__name__, "a dataset must define __getitem__",
                      hint="Subclasses of Dataset should implement __getitem__.")
        )

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Base class of datasets that are read as a stream: define `__iter__`.

    Each worker of a DataLoader iterates over its own copy; use `get_worker_info()` inside
    `__iter__` to give every worker a part of the stream, or each sample comes once per worker.
    """

    def __add__(self, other: Dataset[T_co]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Sample i is `(tensors[0][i], tensors[1][i], ...)`."""

    def __init__(self, *tensors: Tensor):
        sizes = [t.size(0) for t in tensors]
        if any(n != sizes[0] for n in sizes):
            raise DatasetError(
                complaint("TensorDataset", "tensors must have the same size in dimension 0",
                          dict(sizes=sizes), "Size mismatch between tensors.")
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Sample i is the tuple (or, from keyword arguments, the dict) of the datasets' samples i."""

    def __init__(self, *args: Dataset, **kwargs: Dataset):
        if bool(args) == bool(kwargs):
            raise ValueRangeError(
                complaint("StackDataset", "datasets must be given, all by position or all by name",
                          dict(positional=len(args), named=len(kwargs)))
            )
        self.datasets: Any = kwargs if kwargs else args
        sizes = [len(d) for d in self._members()]  # type: ignore[arg-type]
        if any(n != sizes[0] for n in sizes):
            raise ValueRangeError(
                complaint("StackDataset", "datasets must have the same length", dict(lengths=sizes),
                          "Size mismatch between datasets.")
            )
        self._length = sizes[0]

    def _members(self) -> list[Dataset]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def _sample(self, parts: Sequence[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    def __getitem__(self, index: Any) -> Any:
        return self._sample([d[index] for d in self._members()])

    def __getitems__(self, indices: list) -> list:
        columns = [samples(d, indices) for d in self._members()]
        for column in columns:
            if len(column) != len(indices):
                raise ValueRangeError(
                    complaint("StackDataset", "__getitems__ of a member must give one sample an "
                              "index", dict(indices=len(indices), samples=len(column)))
                )
        return [self._sample(parts) for parts in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """One dataset after the other."""

    datasets: list[Dataset[T_co]]
    cumulative_sizes: list[int]

    @staticmethod
    def cumsum(sequence: Sequence[Any]) -> list[int]:
        return list(itertools.accumulate(len(part) for part in sequence))

    def __init__(self, datasets: Iterable[Dataset]):
        self.datasets = list(datasets)
        if not self.datasets:
            raise DatasetError(complaint("ConcatDataset", "there must be at least one dataset",
                                         hint="datasets should not be an empty iterable."))
        for dataset in self.datasets:
            if isinstance(dataset, IterableDataset):
                raise DatasetError(
                    complaint("ConcatDataset", "datasets must be map-style",
                              dict(dataset=type(dataset).__name__),
                              "Use ChainDataset for iterable ones.")
                )
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        size = len(self)
        if index < -size:
            raise ValueRangeError(complaint(
                "ConcatDataset", "absolute value of index should not exceed dataset length",
                dict(index=index, length=size)))
        if index >= size:
            raise IndexOutOfRange(complaint("ConcatDataset", "index must be below the length",
                                            dict(index=index, length=size)))
        position = index + size if index < 0 else index
        part = bisect.bisect_right(self.cumulative_sizes, position)
        start = self.cumulative_sizes[part - 1] if part else 0
        return self.datasets[part][position - start]


class ChainDataset(IterableDataset):
    """One iterable dataset after the other."""

    def __init__(self, datasets: Iterable[Dataset]):
        super().__init__()
        self.datasets = datasets

    def _members(self) -> Iterator[IterableDataset]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise DatasetError(
                    complaint("ChainDataset", "datasets must be iterable",
                              dict(dataset=type(dataset).__name__),
                              "Use ConcatDataset for map-style ones.")
                )
            yield dataset

    def __iter__(self) -> Iterator:
        for dataset in self._members():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(d) for d in self._members())  # type: ignore[arg-type, misc]


class Subset(Dataset[T_co]):
    """The samples of `dataset` at `indices`, in that order."""

    dataset: Dataset[T_co]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        return samples(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def samples(dataset: Any, indices: Iterable[Any]) -> list:
    """The samples at `indices`, through `__getitems__` where the dataset has it."""
    together = getattr(dataset, "__getitems__", None)
    return together(indices) if together else [dataset[i] for i in indices]


def random_split(
    dataset: Dataset[T_co],
    lengths: Sequence[int | float],
    generator: Generator | None = default_generator,
) -> list[Subset[T_co]]:
    """Cut one random permutation of `dataset` into subsets of the given lengths, or fractions.

    Fractions that sum to 1 give `floor(n * fraction)` samples each; what is left over goes one by
    one to the first subsets.
    """
    total = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _counts(lengths, total)
    if sum(lengths) != total:
        raise ValueRangeError(complaint(
            "random_split", "Sum of input lengths does not equal the length of the input dataset!",
            dict(lengths=list(lengths), total=sum(lengths), dataset=total)))
    order = randperm(total, generator=generator).tolist()
    stops = list(itertools.accumulate(int(n) for n in lengths))
    return [Subset(dataset, order[stop - int(n):stop])
            for stop, n in zip(stops, lengths, strict=True)]


def _counts(fractions: Sequence[float], total: int) -> list[int]:
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueRangeError(complaint(
                "random_split", f"Fraction at index {i} is not between 0 and 1",
                dict(fraction=fraction)))
    counts = [math.floor(total * fraction) for fraction in fractions]
    for i in range(total - sum(counts)):
        counts[i % len(counts)] += 1
    for i, n in enumerate(counts):
        if n == 0:
            warnings.warn(f"Length of split at index {i} is 0. This might result in an empty "
                          "dataset.", stacklevel=3)
    return counts
