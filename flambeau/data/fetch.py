"""Reading: from the indices of one task to one batch, the same in the program and in workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.core.dtype import int64
from flambeau.data.collate import default_collate
from flambeau.data.dataset import Subset, TensorDataset, samples
from flambeau.tensor import Tensor, as_tensor


class MapReader:
    """Reads a map-style dataset. `batched`: indices are a list, and samples are collated."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Callable, drop_last: bool):
        self.dataset = dataset
        self.batched = batched
        self.collate_fn = collate_fn

    def __call__(self, indices: Any) -> Any:
        if not self.batched:
            return self.collate_fn(self.dataset[indices])
        if self.collate_fn is default_collate:
            gathered = _gathered(self.dataset, indices)
            if gathered is not None:
                return gathered
        return self.collate_fn(samples(self.dataset, indices))


class StreamReader:
    """Reads an iterable dataset; raises StopIteration at its end. Indices only count samples."""

    def __init__(self, dataset: Any, batched: bool, collate_fn: Callable, drop_last: bool):
        self.stream = iter(dataset)
        self.batched = batched
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.ended = False

    def __call__(self, indices: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.batched:
            return self.collate_fn(next(self.stream))
        batch = []
        for _ in indices:
            try:
                batch.append(next(self.stream))
            except StopIteration:
                self.ended = True
                break
        if not batch or (self.drop_last and len(batch) < len(indices)):
            raise StopIteration
        return self.collate_fn(batch)


def _gathered(dataset: Any, indices: Any) -> list[Tensor] | None:
    """What default_collate makes of a TensorDataset's samples, without making the samples.

    One gather per tensor instead of one view per sample: the same values, far fewer calls.
    """
    if not indices or not all(type(i) is int for i in indices):
        return None
    while type(dataset) is Subset:
        dataset, indices = dataset.dataset, [dataset.indices[i] for i in indices]
    if type(dataset) is not TensorDataset or not dataset.tensors:
        return None
    if any(type(t) is not Tensor for t in dataset.tensors):
        return None
    index = as_tensor(indices, dtype=int64)
    return [t[index] for t in dataset.tensors]
