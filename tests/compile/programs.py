"""Small programs, each one Python feature or library idiom around a little tensor work.

A program is a function that makes its state and returns (callable, list of argument tuples,
observe). The callable is compiled and called with each tuple in turn; `observe()` gives the state
that the calls may have changed. Programs whose name ends in `_io` are expected to break the graph.
"""

import collections
import contextlib
import dataclasses
import enum
import functools
import itertools
import math
import operator
import typing

import numpy as np

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn, optim

PROGRAMS = {}


def program(make):
    PROGRAMS[make.__name__] = make
    return make


def x(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@program
def arithmetic():
    def f(a, b):
        return (a + b) * 2 - a / 3 + (-b) ** 2 - 1.5 * a

    return f, [(x(3), x(3, seed=1))] * 3, None


@program
def positional_keyword_star():
    def g(a, /, b, *rest, scale=2, **extra):
        return a + b * scale + sum(rest) + extra.get("bias", 0)

    def f(a, *args, **kwargs):
        return g(a, *args, **kwargs), g(a, a, scale=3)

    return f, [(x(2), x(2, seed=1), x(2, seed=2))] * 2, None


@program
def defaults_and_lambdas():
    def f(a, k=2, *, shift=1.0):
        double = lambda t, by=k: t * by + shift  # noqa: E731
        return double(a), double(a, by=5)

    return f, [(x(3),), (x(3), 3)], None


@program
def closures_with_state():
    calls = 0
    seen = []

    def f(a):
        nonlocal calls
        calls += 1
        seen.append(calls)
        return a * 2

    return f, [(x(3),)] * 4, lambda: (calls, list(seen))


@program
def inner_closure_counter():
    def f(a):
        total = 0

        def add(v):
            nonlocal total
            total = total + v
            return total

        for k in range(3):
            add(a * k)
        return total, add

    def g(a):
        value, add = f(a)
        return value, add(a)

    return g, [(x(2),)] * 2, None


@program
def decorators():
    def twice(fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            return fn(fn(*args, **kwargs))

        return wrapper

    @twice
    def step(a):
        return a * 1.5 + 1

    def f(a):
        return step(a)

    return f, [(x(3),)] * 2, None


@program
def comprehensions():
    def f(a):
        squares = [a * k for k in range(4) if k % 2]
        table = {str(k): v for k, v in enumerate(squares)}
        flat = {k for k in (1, 2, 2, 3)}
        nested = [[i * j for j in range(2)] for i in range(3)]
        return squares, table, sorted(flat), nested

    return f, [(x(2),)] * 2, None


@program
def generator_expression_and_generator():
    def halves(a, n):
        for _ in range(n):
            a = a / 2
            yield a

    def f(a):
        total = sum(h for h in halves(a, 4))
        first, *rest = halves(a, 3)
        return total, first, list(rest), max(len(t) for t in [[1], [1, 2]])

    return f, [(x(3),)] * 2, None


@program
def generator_send_and_yield_from():
    def inner():
        got = yield 1
        return got * 2

    def outer():
        result = yield from inner()
        yield result

    def f(a):
        g = outer()
        one = next(g)
        two = g.send(a)
        return a * one, two, list(g)

    return f, [(x(3),)] * 2, None


class Doubling:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("enter")
        return 2

    def __exit__(self, kind, error, trace):
        self.log.append(kind.__name__ if kind else None)
        return kind is KeyError


@program
def with_statement():
    log = []

    def f(a):
        with Doubling(log) as two, Doubling(log):
            a = a * two
        with Doubling(log):
            raise KeyError("swallowed")
        return a

    return f, [(x(2),)] * 3, lambda: list(log)


@program
def contextmanager_function():
    log = []

    @contextlib.contextmanager
    def scope(name):
        log.append(name)
        try:
            yield len(log)
        finally:
            log.append("end " + name)

    def f(a):
        with scope("a"):
            return a + 1

    return f, [(x(2),)] * 2, lambda: list(log)


@program
def grad_modes():
    def f(a):
        w = a.clone().requires_grad_()
        with torch.no_grad():
            b = w * 2
        c = w * 3
        with torch.no_grad(), torch.enable_grad():
            d = w * 4
        return b.requires_grad, c.requires_grad, d.requires_grad, b, c.detach(), d.detach()

    return f, [(x(2),)] * 2, None


@program
def try_except_finally():
    log = []

    def risky(k):
        if k > 1:
            raise ValueError(k)
        return k

    def f(a):
        out = []
        for k in range(4):
            try:
                out.append(a * risky(k))
            except ValueError as error:
                log.append(error.args)
                continue
            else:
                log.append("fine")
            finally:
                log.append("finally")
        return out

    return f, [(x(2),)] * 2, lambda: list(log)


@program
def exception_chaining():
    def f(a):
        try:
            try:
                {}["missing"]
            except KeyError as error:
                raise RuntimeError("outer") from error
        except RuntimeError as error:
            return a * 2, str(error), type(error.__cause__).__name__

    return f, [(x(2),)] * 2, None


@program
def loops_with_else():
    def f(a):
        for k in range(5):
            if k == 7:
                break
            if k % 2:
                continue
            a = a + k
        else:
            a = a * 10
        n = 0
        while True:
            n += 1
            if n > 3:
                break
        return a, n

    return f, [(x(2),)] * 2, None


@program
def unpacking():
    def f(pair, a):
        (p, q), r = pair, a
        first, *middle, last = [p, q, r, p]
        merged = {**{"k": p}, **dict(j=q)}
        both = [*middle, *(1, 2)]
        return first + last, middle, merged, both

    return f, [((x(2), x(2, seed=3)), x(2, seed=4))] * 2, None


class Base:
    scale = 2

    def __init__(self, w):
        self.w = w

    def value(self, a):
        return a * self.w * self.scale

    @property
    def doubled(self):
        return self.w * 2

    @doubled.setter
    def doubled(self, value):
        self.w = value / 2

    @classmethod
    def make(cls, w):
        return cls(w)

    @staticmethod
    def shift(a):
        return a + 1

    def __call__(self, a):
        return self.value(a)

    def __add__(self, other):
        return type(self)(self.w + other.w)

    def __len__(self):
        return 3

    def __getitem__(self, k):
        if k >= 3:
            raise IndexError(k)
        return self.w * k

    def __eq__(self, other):
        return isinstance(other, Base) and self.scale == other.scale

    __hash__ = None


class Derived(Base):
    scale = 3

    def __init__(self, w, extra):
        super().__init__(w)
        self.extra = extra

    def value(self, a):
        return super().value(a) + self.extra


@program
def classes_and_super():
    def f(a):
        d = Derived(a, 1)
        made = Base.make(a)
        return d(a), made.doubled, Base.shift(a), (made + d).w, len(d), d == made, list(made)

    return f, [(x(2),)] * 2, None


@program
def object_state():
    b = Base(x(2))

    def f(a):
        b.doubled = a * 4
        b.count = getattr(b, "count", 0) + 1
        return b.value(a)

    return f, [(x(2, seed=5),)] * 3, lambda: (b.count, b.w)


@dataclasses.dataclass
class Config:
    width: int = 3
    rate: float = 0.5
    tags: list = dataclasses.field(default_factory=list)


@program
def dataclass_config():
    config = Config()

    def f(a):
        local = Config(width=4)
        again = dataclasses.replace(config, rate=0.25)
        return a * config.rate + local.width, again.rate, config == Config(), repr(local)

    return f, [(x(2),)] * 2, None


Point = collections.namedtuple("Point", "left right")


class Typed(typing.NamedTuple):
    value: object
    name: str = "none"


@program
def named_tuples():
    def f(p):
        q = p._replace(left=p.left * 2)
        t = Typed(p.right)
        return q, t.name, Point(*q).left, t._asdict()["name"]

    return f, [(Point(x(2), x(2, seed=1)),)] * 2, None


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


@program
def enums():
    def f(a, mode):
        if mode is Mode.FAST:
            return a * 2
        return a * Mode.SLOW.value, Mode("SLOW" and 2).name, Mode["FAST"].value

    return f, [(x(2), Mode.FAST), (x(2), Mode.SLOW), (x(2), Mode.FAST)], None


@program
def strings():
    def f(a, name):
        text = f"{name!r:>8}|{len(name):03d}|{3.14159:.2f}"
        parts = ",".join(s.upper() for s in name.split("-"))
        return a + len(text), text, parts, "%s=%d" % (name, 3), "{}-{k}".format(1, k=2)

    return f, [(x(2), "a-b"), (x(2), "a-b"), (x(2), "cd")], None


@program
def slices_and_indexing():
    def f(a):
        values = list(range(10))
        values[2:4] = [20, 30]
        del values[0]
        a = a.clone()
        a[0] = 1
        a[1:, ::2] += 5
        return a[..., None], a[-1], a[:, 1:], values[::-2], "hello"[1:3]

    return f, [(x(3, 4),)] * 2, None


@program
def builtin_functions():
    def f(a):
        pairs = list(zip([1, 2, 3], "abc", strict=True))
        total = functools.reduce(operator.add, [a, a * 2, a * 3])
        ordered = sorted([3, 1, 2], key=lambda v: -v)
        mapped = list(map(lambda v: v * 2, [a, a + 1]))
        kept = list(filter(None, [0, 1, 2]))
        return (
            pairs,
            total,
            ordered,
            mapped,
            kept,
            min(3, 1),
            max([1, 5], default=0),
            any(v > 2 for v in kept),
            all([]),
            list(reversed([1, 2])),
            abs(-3),
            divmod(7, 2),
            round(2.567, 1),
            isinstance(a, torch.Tensor),
            callable(f),
            list(enumerate("ab", 1)),
        )

    return f, [(x(2),)] * 2, None


@program
def math_and_numpy_scalars():
    width = np.float32(4.0)

    def f(a):
        return a / math.sqrt(a.shape[-1]) + math.pi, a * float(np.sqrt(width)), math.floor(2.5)

    return f, [(x(2, 8),)] * 2, None


@program
def dict_methods():
    table = {"a": 1, "b": 2}

    def f(t):
        table["c"] = table.get("c", 0) + 1
        table.setdefault("d", []).append(len(table))
        local = dict(table)
        local.pop("a")
        local.update(b=5)
        return t * local["b"], list(local.items())[:1], "z" in table

    return f, [(x(2),)] * 3, lambda: {k: repr(v) for k, v in table.items()}


@program
def list_methods():
    history = [1.0]

    def f(t):
        history.append(history[-1] * 2)
        local = [3, 1, 2]
        local.sort()
        local.insert(0, 9)
        local.remove(3)
        return t * local.pop(), local, local.index(9), len(history) > 1

    return f, [(x(2),)] * 3, lambda: list(history)


@program
def set_and_deque():
    queue = collections.deque(maxlen=2)

    def f(t):
        queue.append(len(queue))
        seen = set()
        seen.add(1)
        seen |= {2, 3}
        return t + len(seen), sorted(seen & {1, 2}), len(queue)

    return f, [(x(2),)] * 3, lambda: list(queue)


@program
def collections_types():
    def f(t):
        counts = collections.Counter("abca")
        groups = collections.defaultdict(list)
        for k in range(4):
            groups[k % 2].append(k)
        order = collections.OrderedDict(a=1, b=2)
        order.move_to_end("a")
        return t * counts["a"], dict(groups), list(order)

    return f, [(x(2),)] * 2, None


@program
def itertools_use():
    def f(t):
        pairs = list(itertools.product([1, 2], "ab"))
        chained = list(itertools.chain([1], (2, 3)))
        sums = list(itertools.accumulate([t, t, t]))
        return t * len(pairs), chained, sums, list(itertools.islice(itertools.count(5), 3))

    return f, [(x(2),)] * 2, None


@program
def partial_functions():
    def g(a, b, c=1):
        return a * b + c

    half = functools.partial(g, b=0.5)

    def f(a):
        return half(a), functools.partial(g, a)(2, c=3)

    return f, [(x(2),)] * 2, None


SCALE = 2.0
COUNTER = 0


@program
def module_globals():
    def f(a):
        global COUNTER
        COUNTER = COUNTER + 1
        return a * SCALE

    return f, [(x(2),)] * 4, lambda: COUNTER


@program
def walrus_and_ternary():
    def f(a):
        if (n := a.shape[0]) > 1:
            a = a * n
        return a if n else None, (lambda: n)()

    return f, [(x(2),)] * 2, None


@program
def match_statement():
    def f(a, command):
        match command:
            case {"kind": "scale", "by": by}:
                return a * by
            case ["add", value] if value > 0:
                return a + value
            case str() as text:
                return a + len(text)
            case _:
                return a

    return (
        f,
        [(x(2), {"kind": "scale", "by": 3}), (x(2), ["add", 2]), (x(2), "abc"), (x(2), 1)],
        None,
    )


@program
def recursion():
    def power(a, n):
        return a if n == 0 else power(a, n - 1) * a

    return power, [(x(2), 4)] * 2, None


@program
def assertions():
    def f(a):
        assert a.shape[0] == 2, f"wrong shape {a.shape}"
        assert isinstance(a, torch.Tensor)
        return a * 2

    return f, [(x(2),)] * 2, None


@program
def tensor_metadata():
    def f(a):
        b, c = a.shape
        return (
            a.view(-1, 2).sum(0),
            a.size(0),
            a.dim(),
            a.dtype,
            a.numel(),
            a.reshape(c, b).t().contiguous(),
            a.to(torch.float64),
            a.is_contiguous(),
        )

    return f, [(x(4, 2),)] * 2, None


@program
def in_place_and_views():
    def f(a, b):
        a += b
        v = a[0]
        v.mul_(2)
        b.zero_()
        return v, a.t()

    args = (x(2, 3), x(2, 3, seed=1))
    return f, [args] * 3, lambda: args


@program
def aliased_inputs():
    def f(a, b):
        a.add_(1)
        return b * 2

    one, two = x(2), x(2, seed=1)
    return f, [(one, two), (one, one), (two, one), (one, one)], lambda: (one, two)


@program
def tensor_attributes():
    t = x(2)
    t.mark = 3

    def f(a):
        a.note = "seen"
        return a * t.mark

    arg = x(2, seed=2)
    return f, [(arg,)] * 2, lambda: arg.note


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.heads = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Linear(4, 3)})
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("steps", torch.zeros(1))
        self.extra = nn.ParameterList([nn.Parameter(torch.ones(2))])
        self.calls = 0

    def forward(self, a, head="a"):
        self.calls += 1
        self.steps += 1
        for layer in self.layers:
            a = F.relu(layer(a))
        out = self.heads[head](a) * self.scale
        return out + (self.extra[0] if head == "a" else 0)


def make_net(seed=0):
    torch.manual_seed(seed)
    return Net()


@program
def module_containers():
    net = make_net()

    def f(a, head):
        return net(a, head=head)

    return f, [(x(3, 4), "a"), (x(3, 4), "b"), (x(3, 4), "a")], lambda: (net.calls, net.steps)


@program
def module_train_eval():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))

    def f(a, training):
        net.train(training)
        torch_out = net(a)
        return torch_out, net.training

    calls = [(x(5, 4), False)] * 2
    return f, calls, lambda: [b.clone() for b in net.buffers()]


@program
def module_hooks():
    net = nn.Linear(3, 3)
    log = []
    net.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    net.register_forward_hook(lambda m, args, out: log.append(tuple(out.shape)) or out + 1)

    def f(a):
        return net(a)

    return f, [(x(2, 3),)] * 2, lambda: list(log)


@program
def tied_weights():
    torch.manual_seed(0)
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight

    def f(a):
        loss = second(first(a)).sum()
        loss.backward()
        grad = first.weight.grad
        first.weight.grad = None
        return grad

    return f, [(x(2, 3),)] * 2, None


@program
def lazily_created_buffer():
    class Cached(nn.Module):
        def forward(self, a):
            if not hasattr(self, "cache"):
                self.cache = torch.arange(3.0)
            return a + self.cache

    net = Cached()

    def f(a):
        return net(a)

    return f, [(x(3),)] * 3, lambda: net.cache


@program
def parameters_iteration():
    net = make_net()

    def f(a):
        total = sum(p.numel() for p in net.parameters())
        names = [n for n, _ in net.named_parameters()]
        norm = sum((p * p).sum() for p in net.parameters())
        return a * total, names, norm

    return f, [(x(2),)] * 2, None


def training(make_optimizer, **options):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = make_optimizer(net.parameters())
    schedule = options.get("schedule", lambda o: None)(optimizer)

    def step(a, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(a), y)
        loss.backward()
        if options.get("clip"):
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        optimizer.step()
        if schedule is not None:
            schedule.step()
        return loss.detach()

    y = torch.tensor([0, 1, 1])
    calls = [(x(3, 4, seed=k), y) for k in range(5)]
    return step, calls, lambda: [p.detach().clone() for p in net.parameters()]


def _optimizer_programs():
    kinds = {
        "sgd": lambda p: optim.SGD(p, lr=0.1),
        "sgd_momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
        "adam": lambda p: optim.Adam(p, lr=0.01),
        "adamw_amsgrad": lambda p: optim.AdamW(p, lr=0.01, amsgrad=True),
        "rmsprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5),
        "adagrad": lambda p: optim.Adagrad(p, lr=0.1),
        "adadelta": lambda p: optim.Adadelta(p),
        "adamax": lambda p: optim.Adamax(p),
        "nadam": lambda p: optim.NAdam(p),
        "radam": lambda p: optim.RAdam(p),
        "asgd": lambda p: optim.ASGD(p),
        "rprop": lambda p: optim.Rprop(p),
    }
    for name, kind in kinds.items():
        PROGRAMS[f"step_{name}"] = functools.partial(training, kind)
    PROGRAMS["step_clipped"] = functools.partial(training, kinds["sgd"], clip=True)
    PROGRAMS["step_scheduled"] = functools.partial(
        training, kinds["sgd"], schedule=lambda o: optim.lr_scheduler.StepLR(o, 2)
    )


_optimizer_programs()


@program
def gradient_accumulation():
    torch.manual_seed(0)
    net = nn.Linear(3, 1)
    optimizer = optim.SGD(net.parameters(), lr=0.1)

    def step(a, last):
        (net(a).pow(2).mean() / 2).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
        return net.weight.grad.clone()

    calls = [(x(2, 3, seed=k), k % 2 == 1) for k in range(6)]
    return step, calls, lambda: net.weight.detach().clone()


@program
def autograd_grad():
    def f(a):
        a = a.detach().requires_grad_()
        (g,) = torch.autograd.grad((a**3).sum(), a, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), a)
        return g.detach(), h

    return f, [(x(3),)] * 2, None


@program
def outputs_with_history():
    w = x(3).requires_grad_()

    def f(a):
        return (a * w).sin(), (w * 2).detach()

    def outer(a):
        w.grad = None
        out, cut = compiled_inner(a)
        out.sum().backward()
        return w.grad.clone(), cut

    compiled_inner = f
    return f, [(x(3, seed=1),)] * 2, None


@program
def custom_function():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a**3

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return g * 3 * a**2

    def f(a):
        a = a.detach().requires_grad_()
        Cube.apply(a).sum().backward()
        return a.grad

    return f, [(x(3),)] * 2, None


@program
def random_numbers():
    def f(a):
        return a + torch.rand(3), F.dropout(a, 0.5)

    return f, [(x(3),)] * 2, None


@program
def seeding_io():
    def f(a):
        torch.manual_seed(3)
        return a + torch.rand(3), F.dropout(a, 0.5)

    return f, [(x(3),)] * 2, None


@program
def shapes_change():
    def f(a):
        return a.sum(0) / max(a.shape[0], 1), a.reshape(-1)

    return f, [(x(n, 2),) for n in (3, 4, 1, 0, 5)], None


@program
def numbers_change():
    def f(a, step, rate):
        return a * rate / (1 - 0.9**step), step + 1

    return f, [(x(3), n, 0.1 * n) for n in range(1, 6)], None


@program
def types_change():
    def f(a, flag):
        return a * 2 if flag is None else a * flag

    return f, [(x(2), None), (x(2), 3), (x(2), 2.0), (x(2), None), (x(2), True)], None


@program
def data_dependent_if_io():
    def f(a):
        if a.sum() > 0:
            return a * 2
        return a - 1

    return f, [(x(2),), (-x(2).abs(),), (x(2).abs(),)], None


@program
def item_in_the_middle():
    def f(a):
        scale = a.abs().max().item()
        return a / (scale + 1e-6), float(a.sum())

    return f, [(x(3),), (x(3, seed=1),)], None


@program
def prints_io():
    def f(a):
        print("shape", tuple(a.shape))
        return a * 2

    return f, [(x(2),)] * 2, None


@program
def prints_tensor_io():
    def f(a):
        b = a * 2
        print(b)
        return b + 1

    return f, [(x(2),)] * 2, None


@program
def file_io():
    def f(a):
        b = a + 1
        with open("/dev/null", "w") as sink:
            sink.write("text")
        return b * 2

    return f, [(x(2),)] * 2, None


@program
def raising():
    def f(a, bad):
        b = a * 2
        if bad:
            raise ValueError("bad input")
        return b

    return f, [(x(2), False), (x(2), True), (x(2), False)], None


@program
def shape_error():
    def f(a, b):
        try:
            return a @ b
        except RuntimeError:
            return a * 2

    return f, [(x(2, 3), x(2, 3))] * 2, None


@program
def returns_many_kinds():
    def f(a):
        return {"t": a, "n": None, "l": [a * 2, (a, "s")], "s": slice(1, 2), "r": range(3)}

    return f, [(x(2),)] * 2, None


@program
def returned_closure():
    def f(a):
        b = a * 2

        def later(c, d=b):
            return b + c + d

        return later

    def g(a):
        return f(a)(a)

    return g, [(x(2),)] * 2, None


@program
def string_building_of_modules():
    net = make_net()

    def f(a):
        kinds = [type(m).__name__ for m in net.modules()]
        return a * len(kinds), kinds

    return f, [(x(2),)] * 2, None


@program
def star_imports_inside():
    def f(a):
        import math as m
        from functools import reduce

        return a * m.e, reduce(lambda p, q: p + q, [1, 2])

    return f, [(x(2),)] * 2, None


@program
def class_attribute_counter():
    class Counter:
        total = 0
        names = []

        def tick(self):
            Counter.total += 1
            self.names.append(Counter.total)

    counter = Counter()

    def f(a):
        counter.tick()
        return a + 1

    return f, [(x(2),)] * 3, lambda: (Counter.total, list(Counter.names))


@program
def getattr_fallback():
    class Wrapper:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

    wrapper = Wrapper(Base(x(2)))

    def f(a):
        return wrapper.value(a), hasattr(wrapper, "nothing"), getattr(wrapper, "nothing", 3)

    return f, [(x(2),)] * 2, None


@program
def slots_and_descriptors():
    class Slotted:
        __slots__ = ("a", "b")

        def __init__(self, a):
            self.a = a

    class Positive:
        def __set_name__(self, owner, name):
            self.name = "_" + name

        def __get__(self, owner, cls):
            return self if owner is None else getattr(owner, self.name)

        def __set__(self, owner, value):
            setattr(owner, self.name, abs(value))

    class Holder:
        n = Positive()

    outside = Slotted(x(2))
    holder = Holder()

    def f(a):
        inside = Slotted(a)
        inside.b = outside.a
        outside.b = a * 2
        holder.n = -3
        return inside.a + inside.b, holder.n

    return f, [(x(2),)] * 2, lambda: (outside.b, holder.n)


@program
def cached_property_use():
    class Holder:
        def __init__(self):
            self.computed = 0

        @functools.cached_property
        def table(self):
            self.computed += 1
            return [1, 2]

    holder = Holder()

    def f(a):
        return a * holder.table[1], len(holder.table)

    return f, [(x(2),)] * 3, lambda: (holder.computed, holder.table)
