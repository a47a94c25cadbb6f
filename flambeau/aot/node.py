"""The node that a compiled forward pass leaves in the user's autograd graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flambeau.autograd.decomposed import entry
from flambeau.autograd.gradients import grad
from flambeau.autograd.node import Node, gradient_edge
from flambeau.autograd.saved import restore, save
from flambeau.core.context import state
from flambeau.core.errors import AutogradError, complaint
from flambeau.graph.interpret import run_recorded
from flambeau.ops.casts import copy
from flambeau.random.generator import default_generator
from flambeau.tensor.tensor import Tensor, alias

if TYPE_CHECKING:
    from flambeau.aot.program import JointProgram


class CompiledFunctionBackward(Node):
    """The backward pass of a joint program.

    inputs  the inputs from which a replay starts, as the forward pass found them
    kept    what the backward program takes
    random  the generator's state before the forward pass, if that draws
    spent   the recorded nodes whose saved values a backward pass has used up
    """

    __slots__ = ("inputs", "kept", "now", "program", "random", "spent")

    def __init__(
        self,
        program: JointProgram,
        inputs: tuple,
        before: dict[int, Tensor],
        random: Any,
        outs: list[Tensor],
    ):
        pairs = zip(program.differentiable, program.reached)
        edges = [gradient_edge(inputs[k]) if reached else None for k, reached in pairs]
        super().__init__(edges, tuple(outs[k]._spec for k in program.live))
        self.program, self.random = program, random
        self.inputs: dict | None = {k: save(before.get(k, inputs[k])) for k in program.replayed}
        self.kept: list | None = [self._kept(kind, k, inputs, outs) for kind, k in program.places]
        self.spent: set[Node] = set()
        self.now: set[Node] = set()

    def _kept(self, kind: str, k: int, inputs: tuple, outs: list[Tensor]) -> Any:
        """What nobody else can reach needs no check; outputs are kept without their history."""
        if kind == "in":
            shared = k in self.inputs and k not in self.program.copied
            return self.inputs[k] if shared else save(inputs[k])
        if k < self.program.sizes[1]:
            return save(alias(outs[k]))
        return outs[k]

    def gradients(self, cts: list) -> tuple:
        present = tuple(ct is not None for ct in cts)
        reached = [s for s, there in zip(self.program.saving, present) if there]
        self.now = set().union(*reached)
        if self.kept is None or self.now & self.spent:
            raise AutogradError(
                complaint(
                    "backward",
                    "the saved values of this graph have been freed by an earlier backward",
                    dict(node=self.name()),
                    "Pass retain_graph=True to the earlier call.",
                )
            )
        program = None if state.grad_enabled else self.program.backward(present)
        if program is None:
            return self._replayed(cts)
        kept = [restore(self.kept[k], self) for k in program.needed]
        return tuple(program(kept, [ct for ct in cts if ct is not None]))

    def release(self) -> None:
        """Values that outputs without a cotangent need stay until those have had theirs."""
        self.spent |= self.now
        if all(nodes <= self.spent for nodes in self.program.saving) and self.spent:
            self.inputs = self.kept = None

    def _replayed(self, cts: list) -> tuple:
        """The gradients by running the forward pass again through autograd."""
        program, again = self.program, state.grad_enabled
        inputs = {k: restore(saved, self) for k, saved in self.inputs.items()}
        wanted = [k for k in program.differentiable if k in inputs]
        state.grad_enabled = True
        try:
            entries = {k: entry(inputs[k], again) for k in wanted}
            inputs |= entries
            inputs |= {k: copy(inputs[k]) for k in program.copied}
            outs = self._run([inputs.get(k) for k in range(program.count)])
            pairs = [(o, ct) for o, ct in zip(outs, cts) if ct is not None]
            found = grad(
                [o for o, _ in pairs],
                list(entries.values()),
                [ct for _, ct in pairs],
                create_graph=again,
                allow_unused=True,
            )
        finally:
            state.grad_enabled = again
        by_input = dict(zip(wanted, found))
        return tuple(by_input.get(k) for k in program.differentiable)

    def _run(self, inputs: list) -> list:
        replay = self.program.replay
        if self.random is None:
            return run_recorded(replay, inputs, alias)
        engine = default_generator.engine
        now = engine.get_state()
        engine.set_state(self.random)
        try:
            return run_recorded(replay, inputs, alias)
        finally:
            engine.set_state(now)
