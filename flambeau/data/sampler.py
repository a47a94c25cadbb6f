"""Samplers: the order in which a map-style dataset is read.

Each draws exactly PyTorch's random numbers. A sampler without a generator takes one seed from the
default generator when iteration starts, so what the program draws meanwhile does not change it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from flambeau.core.dtype import float64, int64
from flambeau.core.errors import ArgumentError, UnsupportedError, ValueRangeError, complaint
from flambeau.data.seeds import drawn_seed
from flambeau.random import Generator
from flambeau.random.functions import multinomial, randint, randperm
from flambeau.tensor import as_tensor

T_co = TypeVar("T_co", covariant=True)

_DRAWN_TOGETHER = 32  # indices in one call of randint when sampling with replacement


class Sampler(Generic[T_co]):
    """Base class: define `__iter__` (indices, or lists of them), and `__len__` if it is known."""

    def __init__(self, data_source: Any = None):
        pass

    def __iter__(self) -> Iterator[T_co]:
        raise UnsupportedError(complaint(type(self).__name__, "a sampler must define __iter__"))


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ..."""

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """A permutation of the indices, or `num_samples` indices drawn with replacement.

    Without replacement and with num_samples > n: as many permutations as it takes.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise ArgumentError(complaint("RandomSampler", "replacement should be a boolean value",
                                          dict(replacement=replacement)))
        _require_positive("RandomSampler", "num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = Generator()
            generator.manual_seed(drawn_seed())
        draw = _replaced(n, self.num_samples, generator) if self.replacement else _permuted(
            n, self.num_samples, generator)
        yield from draw

    def __len__(self) -> int:
        return self.num_samples


def _replaced(n: int, count: int, generator: Generator) -> Iterator[int]:
    for start in range(0, count, _DRAWN_TOGETHER):
        size = min(_DRAWN_TOGETHER, count - start)
        yield from randint(high=n, size=(size,), dtype=int64, generator=generator).tolist()


def _permuted(n: int, count: int, generator: Generator) -> Iterator[int]:
    for _ in range(count // n):
        yield from randperm(n, generator=generator).tolist()
    # PyTorch draws the last, cut permutation even when nothing of it is used.
    yield from randperm(n, generator=generator).tolist()[: count % n]


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` indices, index i with a probability proportional to `weights[i]`."""

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ):
        _require_positive("WeightedRandomSampler", "num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueRangeError(complaint(
                "WeightedRandomSampler", "replacement should be a boolean value",
                dict(replacement=replacement)))
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.dim() != 1:
            raise ValueRangeError(complaint(
                "WeightedRandomSampler", "weights should be a 1d sequence",
                dict(shape=tuple(self.weights.shape))))
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(self.weights, self.num_samples, self.replacement,
                            generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list]):
    """Lists of `batch_size` indices; the last one may be shorter, unless `drop_last`."""

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool):
        _require_positive("BatchSampler", "batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueRangeError(complaint("BatchSampler", "drop_last should be a boolean value",
                                            dict(drop_last=drop_last)))
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def _require_positive(who: str, name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueRangeError(complaint(who, f"{name} should be a positive integer value",
                                        {name: value}))
