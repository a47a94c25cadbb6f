"""Sequences of different lengths as one tensor: padded with a value, or packed step by step.

A packed sequence holds, for each step, the rows of the sequences that are still running; the
sequences are sorted by decreasing length, so that these are always the first ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from flambeau.core.dtype import int64
from flambeau.core.errors import OpError, ShapeError, ValueRangeError, complaint
from flambeau.tensor import Tensor, arange, cat, full, sort, stack
from flambeau.tensor.interop import tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedFields(NamedTuple):
    """data (rows, ...), batch_sizes (steps) on the CPU, and how the batch was sorted."""

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(PackedFields):
    """What pack_padded_sequence and pack_sequence make and recurrent modules take and give."""

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueRangeError(
                complaint(
                    "PackedSequence",
                    "batch_sizes should always be on CPU",
                    {"device": batch_sizes.device},
                )
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same with data, and the sorting, moved or cast."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        where = {key: v for key, v in kwargs.items() if key not in ("device", "dtype")}
        order, back = (
            None if index is None else index.to(data.device, **where)
            for index in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(data, self.batch_sizes, order, back)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on a GPU."""
        return self.to(*args, device="cuda", **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The same on the CPU."""
        return self.to(*args, device="cpu", **kwargs)

    def pin_memory(self) -> PackedSequence:
        """The same with its tensors in page-locked memory."""
        order, back = (
            None if index is None else index.pin_memory()
            for index in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(self.data.pin_memory(), self.batch_sizes, order, back)

    def double(self) -> PackedSequence:
        """The same with float64 data."""
        return type(self)(self.data.double(), *self[1:])

    def float(self) -> PackedSequence:
        """The same with float32 data."""
        return type(self)(self.data.float(), *self[1:])

    def half(self) -> PackedSequence:
        """The same with float16 data."""
        return type(self)(self.data.half(), *self[1:])

    def long(self) -> PackedSequence:
        """The same with int64 data."""
        return type(self)(self.data.long(), *self[1:])

    def int(self) -> PackedSequence:
        """The same with int32 data."""
        return type(self)(self.data.int(), *self[1:])

    def short(self) -> PackedSequence:
        """The same with int16 data."""
        return type(self)(self.data.short(), *self[1:])

    def char(self) -> PackedSequence:
        """The same with int8 data."""
        return type(self)(self.data.char(), *self[1:])

    def byte(self) -> PackedSequence:
        """The same with uint8 data."""
        return type(self)(self.data.byte(), *self[1:])

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return self.data.device.type == "cuda"

    def is_pinned(self) -> bool:
        """Whether the data is in page-locked memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """q with q[permutation[i]] = i."""
    if permutation is None:
        return None
    inverse = permutation.new_empty(permutation.shape)
    inverse[permutation] = arange(permutation.numel(), device=permutation.device)
    return inverse


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | list[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Pack (steps, batch, ...), or (batch, steps, ...), by the sequences' lengths.

    enforce_sorted: the lengths must be given in decreasing order; otherwise they are sorted here.
    """
    if not isinstance(lengths, Tensor):
        lengths = tensor(lengths, dtype=int64)
    lengths = lengths.to("cpu", int64)
    order = None
    if not enforce_sorted:
        lengths, order = sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    padded = input.transpose(0, 1) if batch_first else input
    counts = lengths.tolist()
    check_lengths(counts, padded, enforce_sorted)
    sizes = [sum(length > step for length in counts) for step in range(counts[0])]
    data = cat([padded[step, :size] for step, size in enumerate(sizes)])
    return PackedSequence(data, tensor(sizes, dtype=int64), order, None)


def check_lengths(lengths: list[int], padded: Tensor, sorted_by_caller: bool) -> None:
    """Refuse lengths that do not describe the padded (steps, batch, ...)."""
    steps, batch = padded.shape[:2]
    if len(lengths) != batch:
        raise ShapeError(
            complaint(
                "pack_padded_sequence",
                "there must be one length for each sequence of the batch",
                {"lengths": len(lengths), "batch": batch},
            )
        )
    if not lengths or min(lengths) <= 0:
        raise OpError(
            complaint(
                "pack_padded_sequence",
                "every sequence must have a length greater than 0",
                {"lengths": lengths},
            )
        )
    if sorted_by_caller and lengths != sorted(lengths, reverse=True):
        raise OpError(
            complaint(
                "pack_padded_sequence",
                "lengths must be in decreasing order when enforce_sorted=True",
                {"lengths": lengths},
                "Pass enforce_sorted=False.",
            )
        )
    if lengths[0] > steps:
        raise ShapeError(
            complaint(
                "pack_padded_sequence",
                "no length may exceed the number of steps",
                {"longest": lengths[0], "steps": steps},
            )
        )


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """(padded, lengths): the inverse of pack_padded_sequence, in the batch's first order."""
    sizes = sequence.batch_sizes.tolist()
    steps = len(sizes)
    if total_length is not None and total_length < steps:
        raise ValueRangeError(
            complaint(
                "pad_packed_sequence",
                "total_length must be at least the length of the longest sequence",
                {"total_length": total_length, "longest": steps},
            )
        )
    data = sequence.data
    batch, features = sizes[0], data.shape[1:]
    lengths = tensor([sum(size > i for size in sizes) for i in range(batch)], dtype=int64)
    rows: list[int] = []
    columns: list[int] = []
    for step, size in enumerate(sizes):
        rows += [step] * size
        columns += range(size)
    shape = (total_length or steps, batch, *features)
    padded = full(shape, padding_value, dtype=data.dtype, device=data.device)
    where = tensor(rows, device=data.device), tensor(columns, device=data.device)
    padded = padded.index_put(where, data)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(
    sequences: Tensor | list[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack tensors (length_i, ...), padded to the longest, into (length, batch, ...)."""
    if isinstance(sequences, Tensor):
        sequences = list(sequences.unbind(0))
    elif not isinstance(sequences, Iterable):
        raise OpError(
            complaint(
                "pad_sequence", "an iterable of tensors is expected", {"type": type(sequences)}
            )
        )
    sequences = list(sequences)
    if not sequences:
        raise OpError(complaint("pad_sequence", "at least one sequence is expected"))
    if padding_side not in ("left", "right"):
        raise OpError(
            complaint(
                "pad_sequence",
                "padding_side must be 'left' or 'right'",
                {"padding_side": repr(padding_side)},
            )
        )
    longest = max(s.size(0) for s in sequences)
    padded = [padded_to(s, longest, padding_value, padding_side) for s in sequences]
    return stack(padded, 0 if batch_first else 1)


def padded_to(sequence: Tensor, length: int, value: float, side: str) -> Tensor:
    """sequence with rows of value at one side."""
    missing = length - sequence.size(0)
    if missing == 0:
        return sequence
    rows = full((missing, *sequence.shape[1:]), value, dtype=sequence.dtype, device=sequence.device)
    return cat([sequence, rows] if side == "right" else [rows, sequence])


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded batch, each at its length."""
    padded = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [sequence[:length] for sequence, length in zip(padded, lengths.tolist(), strict=True)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack a list of tensors (length_i, ...)."""
    lengths = tensor([v.size(0) for v in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The tensors that pack_sequence was given."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
