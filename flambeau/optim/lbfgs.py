"""L-BFGS: Newton's method with the inverse Hessian built from the last gradients.

    y_i = g_(i+1) - g_i        s_i = x_(i+1) - x_i        d = -H g, H from (s_i, y_i) by two loops
    x = x + t d                (Nocedal and Wright, Numerical Optimization, algorithm 7.4)

One `step` runs up to `max_iter` iterations; its closure is called many times.
"""

from collections.abc import Callable, Iterable
from typing import Any

from flambeau.autograd import enable_grad, no_grad
from flambeau.core.errors import OpError, complaint
from flambeau.optim import checks
from flambeau.optim.line_search import LineSearch, Point
from flambeau.optim.optimizer import Optimizer
from flambeau.tensor import Tensor, cat, view_as_real

# A curvature y's below this would make the inverse Hessian indefinite or huge.
LEAST_CURVATURE = 1e-10


class LBFGS(Optimizer):
    """Limited-memory BFGS over one parameter group; needs (history_size + 1) copies of it.

    max_eval: most closure calls a step (default 5/4 of max_iter); tolerance_grad: stop when no
    gradient element is larger; tolerance_change: stop when neither loss nor parameters move more;
    line_search_fn: None (step length lr) or "strong_wolfe".
    """

    def __init__(
        self,
        params: Iterable,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        checks.learning_rate("LBFGS", lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        checks.require(
            len(self.param_groups) == 1,
            "LBFGS",
            "all parameters share one group",
            "One inverse Hessian serves them all.",
            groups=len(self.param_groups),
        )

    @no_grad()
    def step(self, closure: Callable) -> Any:
        """Minimise; `closure` clears gradients, computes the loss, back-propagates, returns it."""
        return _Descent(self, enable_grad()(closure)).run()

    # -- all parameters as one vector

    def flat_grad(self) -> Tensor:
        """All gradients in one vector, zeros where a parameter has none."""
        return cat([_flat(p if p.grad is None else p.grad, p.grad is None) for p in self._params])

    def move(self, length: float, direction: Tensor) -> None:
        """x += length * direction."""
        start = 0
        for param in self._params:
            real = view_as_real(param) if param.is_complex() else param
            part = direction[start : start + real.numel()]
            real.add_(part.view(real.shape), alpha=length)
            start += real.numel()

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]


def _flat(x: Tensor, zeros: bool) -> Tensor:
    x = view_as_real(x) if x.is_complex() else x
    return x.new_zeros(x.numel()) if zeros else x.reshape(-1)


def _number(loss: Any) -> float:
    return loss.item() if isinstance(loss, Tensor) else float(loss)


class _Descent:
    """One call of `LBFGS.step`; what the next call needs is in the first parameter's state."""

    def __init__(self, optimizer: LBFGS, closure: Callable) -> None:
        self.optimizer = optimizer
        self.closure = closure
        self.options = optimizer.param_groups[0]
        lr = self.options["lr"]
        self.lr = lr.item() if isinstance(lr, Tensor) else lr
        self.state = optimizer.state[optimizer._params[0]]
        self.state.setdefault("func_evals", 0)
        self.state.setdefault("n_iter", 0)

    def run(self) -> Any:
        """Iterate until a stopping rule holds; the loss at the start of the step."""
        state, options = self.state, self.options
        first_loss = self.closure()
        self.loss, self.grad = _number(first_loss), self.optimizer.flat_grad()
        self.evaluations = 1
        state["func_evals"] += 1
        if self._flat_here():
            return first_loss
        for iteration in range(1, options["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction()
            state["prev_flat_grad"], state["prev_loss"] = self.grad.clone(), self.loss
            slope = self.grad.dot(direction).item()
            state["d"], state["t"] = direction, self._first_length()
            if slope > -options["tolerance_change"]:
                break
            self._advance(direction, slope, last=iteration == options["max_iter"])
            if self._finished(direction):
                break
        return first_loss

    def _flat_here(self) -> bool:
        return self.grad.abs().max().item() <= self.options["tolerance_grad"]

    def _first_length(self) -> float:
        if self.state["n_iter"] == 1:
            return min(1.0, 1.0 / self.grad.abs().sum().item()) * self.lr
        return self.lr

    def _finished(self, direction: Tensor) -> bool:
        options, state = self.options, self.state
        return (
            self.evaluations >= options["max_eval"]
            or self._flat_here()
            or direction.mul(state["t"]).abs().max().item() <= options["tolerance_change"]
            or abs(self.loss - state["prev_loss"]) < options["tolerance_change"]
        )

    def _direction(self) -> Tensor:
        """-H g; steepest descent at the very first iteration."""
        state = self.state
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return self.grad.neg()
        self._remember(self.grad.sub(state["prev_flat_grad"]), state["d"].mul(state["t"]))
        changes, moves, inverse = state["old_dirs"], state["old_stps"], state["ro"]
        weights: list[Any] = [None] * len(changes)
        q = self.grad.neg()
        for i in reversed(range(len(changes))):
            weights[i] = moves[i].dot(q) * inverse[i]
            q.add_(changes[i] * -weights[i])
        q = q * state["H_diag"]
        for i in range(len(changes)):
            q.add_(moves[i] * (weights[i] - changes[i].dot(q) * inverse[i]))
        return q

    def _remember(self, change: Tensor, move: Tensor) -> None:
        """Keep (y, s) when the curvature along s is safely positive."""
        state = self.state
        curvature = change.dot(move)
        if curvature.item() <= LEAST_CURVATURE:
            return
        kept = (
            (state["old_dirs"], change),
            (state["old_stps"], move),
            (state["ro"], 1.0 / curvature),
        )
        for values, value in kept:
            if len(values) == self.options["history_size"]:
                values.pop(0)
            values.append(value)
        state["H_diag"] = curvature / change.dot(change)

    def _advance(self, direction: Tensor, slope: float, last: bool) -> None:
        """Move along `direction` and evaluate there; without a search, not after the last move."""
        state, search = self.state, self.options["line_search_fn"]
        before = self.evaluations
        if search is None:
            self.optimizer.move(state["t"], direction)
            if not last:
                self.loss, self.grad = self._evaluate()
                self.evaluations += 1
        elif search == "strong_wolfe":
            self._search(direction, slope)
        else:
            must = "line_search_fn must be None or 'strong_wolfe'"
            raise OpError(complaint("LBFGS", must, {"line_search_fn": search}))
        state["func_evals"] += self.evaluations - before

    def _search(self, direction: Tensor, slope: float) -> None:
        params = self.optimizer._params
        origin = [param.clone() for param in params]

        def evaluate(length: float) -> tuple[float, Tensor]:
            self.optimizer.move(length, direction)
            values = self._evaluate()
            for param, value in zip(params, origin, strict=True):
                param.copy_(value)
            return values

        search = LineSearch(evaluate, Point(0, self.loss, self.grad, slope), direction)
        best = search.best(self.state["t"])
        self.loss, self.grad, self.state["t"] = best.value, best.grad, best.t
        self.evaluations += search.evaluations
        self.optimizer.move(best.t, direction)

    def _evaluate(self) -> tuple[float, Tensor]:
        loss = _number(self.closure())
        return loss, self.optimizer.flat_grad()
