"""Softmax over very many classes (Grave et al., 2017): rare ones in clusters with small vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from flambeau.core.errors import OpError, ValueRangeError, complaint
from flambeau.nn import functional as F
from flambeau.nn.modules.container import ModuleList, Sequential
from flambeau.nn.modules.linear import Linear
from flambeau.nn.modules.module import Module
from flambeau.tensor import Tensor

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    """output: the log-probability of each target; loss: minus their mean."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of targets among n_classes, sorted from frequent to rare.

    The head scores the classes below cutoffs[0] and one entry for each further cluster; cluster i
    has vectors of in_features / div_value^(i + 1) features.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        bounds = list(cutoffs)
        check_cutoffs(bounds, n_classes)
        kind = {"device": device, "dtype": dtype}
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*bounds, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **kind)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            width = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **kind),
                    Linear(width, size, bias=False, **kind),
                )
            )

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for linear in cluster.children():
                linear.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """input (batch, in_features), target (batch); or one of each without batch."""
        self._check(input_, target_)
        batched = target_.dim() > 0
        x = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        head = F.log_softmax(self.head(x), dim=1)
        in_head = target < self.shortlist_size
        column = target.where(in_head, target.new_zeros(target.shape))
        rest = x.new_zeros(target.shape)
        for i, cluster in enumerate(self.tail):
            inside = (target >= self.cutoffs[i]) & (target < self.cutoffs[i + 1])
            rows = inside.nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            scores = F.log_softmax(cluster(x.index_select(0, rows)), dim=1)
            relative = target.index_select(0, rows) - self.cutoffs[i]
            rest = rest.index_copy(0, rows, scores.gather(1, relative.unsqueeze(1)).squeeze(1))
            place = target.new_full(target.shape, self.shortlist_size + i)
            column = place.where(inside, column)
        output = rest + head.gather(1, column.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _check(self, input: Tensor, target: Tensor) -> None:
        facts = {"input": tuple(input.shape), "target": tuple(target.shape)}
        if target.dim() > 1:
            rule = "0D or 1D targets are expected (multi-target is not supported)"
            raise OpError(complaint("AdaptiveLogSoftmaxWithLoss", rule, facts))
        if input.dim() != target.dim() + 1:
            rule = "the input must have one dimension more than the target"
            raise OpError(complaint("AdaptiveLogSoftmaxWithLoss", rule, facts))
        if target.dim() == 1 and input.size(0) != target.size(0):
            rule = "input and target must have the same size in the batch dimension"
            raise OpError(complaint("AdaptiveLogSoftmaxWithLoss", rule, facts))
        if target.numel() and not bool(((target >= 0) & (target < self.n_classes)).all()):
            raise OpError(
                complaint(
                    "AdaptiveLogSoftmaxWithLoss",
                    f"target values must be in [0, {self.n_classes - 1}]",
                    {"lowest": int(target.min()), "highest": int(target.max())},
                )
            )

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        """All log-probabilities, given the head's scores."""
        out = input.new_empty((head_output.size(0), self.n_classes))
        head = F.log_softmax(head_output, dim=1)
        out[:, : self.shortlist_size] = head[:, : self.shortlist_size]
        for i, cluster in enumerate(self.tail):
            start, stop = self.cutoffs[i], self.cutoffs[i + 1]
            scores = F.log_softmax(cluster(input), dim=1)
            out[:, start:stop] = scores + head[:, self.shortlist_size + i].unsqueeze(1)
        return out

    def log_prob(self, input: Tensor) -> Tensor:
        """(batch, n_classes): the log-probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """(batch): the most probable class, looking into clusters only where the head says so."""
        head_output = self.head(input)
        output = head_output.argmax(1)
        outside = output >= self.shortlist_size
        if not bool(outside.any()):
            return output
        rows = outside.nonzero().squeeze(1)
        best = self._get_full_log_prob(
            input.index_select(0, rows), head_output.index_select(0, rows)
        ).argmax(1)
        return output.index_copy(0, rows, best)


def check_cutoffs(cutoffs: list[int], n_classes: int) -> None:
    """Refuse bounds that are not increasing integers between 1 and n_classes - 1."""
    increasing = cutoffs == sorted(set(cutoffs))
    inside = bool(cutoffs) and min(cutoffs) > 0 and max(cutoffs) <= n_classes - 1
    if not (increasing and inside and all(int(c) == c for c in cutoffs)):
        raise ValueRangeError(
            complaint(
                "AdaptiveLogSoftmaxWithLoss",
                f"cutoffs must be increasing integers between 1 and {n_classes - 1}",
                {"cutoffs": cutoffs},
            )
        )
