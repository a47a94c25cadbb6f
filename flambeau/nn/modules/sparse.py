"""Tables of vectors, looked up by index."""

from __future__ import annotations

from typing import Any

from flambeau.core.errors import complaint
from flambeau.nn import functional as F
from flambeau.nn import init
from flambeau.nn.modules.module import Module
from flambeau.nn.parameter import Parameter
from flambeau.tensor import Tensor, empty

__all__ = ["Embedding", "EmbeddingBag"]


def checked_padding_index(name: str, padding_idx: int | None, rows: int) -> int | None:
    """padding_idx counted from the start."""
    if padding_idx is None:
        return None
    if not -rows <= padding_idx < rows:
        raise AssertionError(
            complaint(
                name,
                "padding_idx must be within num_embeddings",
                {"padding_idx": padding_idx, "num_embeddings": rows},
            )
        )
    return padding_idx % rows


def checked_table(name: str, weight: Tensor, rows: int, width: int) -> Tensor:
    """A given table, if its shape is right."""
    if list(weight.shape) != [rows, width]:
        raise AssertionError(
            complaint(
                name,
                "the weight must be (num_embeddings, embedding_dim)",
                {"weight": tuple(weight.shape), "wanted": (rows, width)},
            )
        )
    return weight


class Embedding(Module):
    """y = weight[input]: weight (num_embeddings, embedding_dim) starts normal with deviation 1.

    Row padding_idx starts as zeros and gets no gradient. max_norm: rows that are looked up are
    first scaled down, in place, to at most that norm_type norm.
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "padding_idx",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "sparse",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = checked_padding_index("Embedding", padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if _weight is None:
            table = empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(table, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            table = checked_table("Embedding", _weight, num_embeddings, embedding_dim)
            self.weight = Parameter(table, requires_grad=not _freeze)
        self.sparse = sparse

    def reset_parameters(self) -> None:
        """Draw the table again; the padding row is zero."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        return table_repr(self)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An Embedding over a given (num_embeddings, embedding_dim) table; freeze: not trained."""
        check_is_matrix(embeddings)
        rows, width = embeddings.shape
        return cls(
            rows,
            width,
            _weight=embeddings,
            _freeze=freeze,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )


def check_is_matrix(embeddings: Tensor) -> None:
    """Refuse a table that is not two-dimensional."""
    if embeddings.dim() != 2:
        raise AssertionError(
            complaint(
                "from_pretrained",
                "the table must be 2-dimensional",
                {"shape": tuple(embeddings.shape)},
            )
        )


def table_repr(module: Module, mode: str | None = None) -> str:
    """The text form that both kinds of table share."""
    parts = [f"{module.num_embeddings}, {module.embedding_dim}"]
    if mode is None and module.padding_idx is not None:
        parts.append(f"padding_idx={module.padding_idx}")
    if module.max_norm is not None:
        parts.append(f"max_norm={module.max_norm}")
    if module.norm_type != 2:
        parts.append(f"norm_type={module.norm_type}")
    if module.scale_grad_by_freq is not False:
        parts.append(f"scale_grad_by_freq={module.scale_grad_by_freq}")
    if mode is not None:
        parts.append(f"mode={mode!r}")
        if module.padding_idx is not None:
            parts.append(f"padding_idx={module.padding_idx}")
    elif module.sparse is not False:
        parts.append("sparse=True")
    return ", ".join(parts)


class EmbeddingBag(Module):
    """The sum, mean or maximum of the embeddings of each bag of indices.

    input (bags, length), or one-dimensional with `offsets` where the bags start.
    """

    __constants__ = [
        "num_embeddings",
        "embedding_dim",
        "max_norm",
        "norm_type",
        "scale_grad_by_freq",
        "mode",
        "sparse",
        "include_last_offset",
        "padding_idx",
    ]

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = checked_padding_index("EmbeddingBag", padding_idx, num_embeddings)
        if _weight is None:
            table = empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(table)
            self.reset_parameters()
        else:
            table = checked_table("EmbeddingBag", _weight, num_embeddings, embedding_dim)
            self.weight = Parameter(table)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def reset_parameters(self) -> None:
        """Draw the table again; the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        return table_repr(self, self.mode)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """An EmbeddingBag over a given (num_embeddings, embedding_dim) table."""
        check_is_matrix(embeddings)
        rows, width = embeddings.shape
        bag = cls(
            rows,
            width,
            _weight=embeddings,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        bag.weight.requires_grad = not freeze
        return bag
