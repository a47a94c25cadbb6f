"""Every scheduler gives PyTorch's rates and momenta, chained, resumed and in closed form."""

import copy
import warnings

import pytest

import flambeau as fb

torch = pytest.importorskip("torch")


def optimizer(library, kind="SGD", groups=2, **flags):
    params = [library.zeros(2, requires_grad=True) for _ in range(groups)]
    given = [{"params": [p], "lr": 0.1 * 4**i} for i, p in enumerate(params)]
    if kind == "SGD":
        flags = {"momentum": 0.9, **flags}
    return getattr(library.optim, kind)(given, lr=0.1, **flags)


def schedulers(library):
    return library.optim.lr_scheduler


BUILD = {
    "LambdaLR": lambda s, o, **k: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)], **k),
    "MultiplicativeLR": lambda s, o, **k: s.MultiplicativeLR(o, lambda e: 1 - 0.1 / e, **k),
    "StepLR": lambda s, o, **k: s.StepLR(o, 3, 0.5, **k),
    "MultiStepLR": lambda s, o, **k: s.MultiStepLR(o, [2, 2, 5], 0.5, **k),
    "ConstantLR": lambda s, o, **k: s.ConstantLR(o, 0.25, 4, **k),
    "LinearLR": lambda s, o, **k: s.LinearLR(o, 0.25, 0.9, 6, **k),
    "ExponentialLR": lambda s, o, **k: s.ExponentialLR(o, 0.9, **k),
    "PolynomialLR": lambda s, o, **k: s.PolynomialLR(o, 8, 2.0, **k),
    "CosineAnnealingLR": lambda s, o, **k: s.CosineAnnealingLR(o, 5, 0.01, **k),
    "WarmRestarts": lambda s, o, **k: s.CosineAnnealingWarmRestarts(o, 2, 2, 0.01, **k),
    "WarmRestarts1": lambda s, o, **k: s.CosineAnnealingWarmRestarts(o, 3, 1, **k),
    "CyclicLR": lambda s, o, **k: s.CyclicLR(o, 0.01, 0.1, 3, **k),
    "CyclicLR2": lambda s, o, **k: s.CyclicLR(o, [0.01, 0.02], 1.0, 3, 2, "triangular2", **k),
    "CyclicLRexp": lambda s, o, **k: s.CyclicLR(o, 0.01, 1.0, 3, mode="exp_range", gamma=0.9, **k),
    "CyclicLRfn": lambda s, o, **k: s.CyclicLR(
        o, 0.01, 1.0, 2, scale_fn=lambda x: 1 / (5 ** (x * 0.1)), scale_mode="iterations", **k
    ),
    "OneCycleLR": lambda s, o, **k: s.OneCycleLR(o, [0.5, 1.0], 20, **k),
    "OneCycleLR3": lambda s, o, **k: s.OneCycleLR(
        o, 0.5, epochs=4, steps_per_epoch=5, three_phase=True, anneal_strategy="linear", **k
    ),
}
CLOSED = ["StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "PolynomialLR"]
CLOSED += ["CosineAnnealingLR", "LambdaLR", "WarmRestarts", "WarmRestarts1"]


def snapshot(opt):
    keys = ("lr", "momentum", "betas")
    return [[group[key] for key in keys if key in group] for group in opt.param_groups]


def close(mine, theirs):
    if isinstance(theirs, list | tuple):
        return all(close(a, b) for a, b in zip(mine, theirs, strict=True))
    return mine == pytest.approx(theirs, rel=1e-12, abs=1e-14)


def course(library, build, steps=19, kind="SGD"):
    opt = optimizer(library, kind)
    scheduler = build(schedulers(library), opt)
    out = [snapshot(opt)]
    for _ in range(steps):
        opt.step()
        scheduler.step()
        out.append([*snapshot(opt), scheduler.get_last_lr()])
    return out, scheduler


def plain(state):
    """A state dict with functions blanked out, which each library refers to in its own way."""
    if isinstance(state, dict):
        drop = ("_scale_fn_ref", "anneal_func")
        return {k: plain(v) for k, v in state.items() if k not in drop}
    return [plain(v) for v in state] if isinstance(state, list) else state


@pytest.mark.parametrize("name", BUILD)
def test_rates_and_state(name):
    mine, my_scheduler = course(fb, BUILD[name])
    theirs, their_scheduler = course(torch, BUILD[name])
    for step, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        assert close(a, b), step
    a, b = plain(my_scheduler.state_dict()), plain(their_scheduler.state_dict())
    assert set(a) == set(b)
    for key in b:
        assert a[key] == b[key] or close(a[key], b[key]), key


@pytest.mark.parametrize("name", ["CyclicLR", "OneCycleLR"])
def test_momentum_of_adam_is_beta1(name):
    mine, _ = course(fb, BUILD[name], kind="Adam")
    theirs, _ = course(torch, BUILD[name], kind="Adam")
    assert close(mine, theirs)


@pytest.mark.parametrize("last_epoch", [0, 2, 5])
@pytest.mark.parametrize("name", BUILD)
def test_construction_with_last_epoch(name, last_epoch):
    def run(library):
        opt = optimizer(library)
        for group in opt.param_groups:
            group.update(initial_lr=1.0, max_lr=1.0, min_lr=0.01)
            group.update(max_momentum=0.9, base_momentum=0.8)
        scheduler = BUILD[name](schedulers(library), opt, last_epoch=last_epoch)
        out = [snapshot(opt)]
        for _ in range(8):
            opt.step()
            scheduler.step()
            out.append(snapshot(opt))
        return out

    assert close(run(fb), run(torch))


@pytest.mark.parametrize("name", BUILD)
def test_resuming_from_a_checkpoint(name):
    whole, _ = course(fb, BUILD[name], 10)
    opt = optimizer(fb)
    first = BUILD[name](schedulers(fb), opt)
    for _ in range(4):
        opt.step()
        first.step()
    saved, groups = copy.deepcopy(first.state_dict()), copy.deepcopy(opt.state_dict())
    opt = optimizer(fb)
    second = BUILD[name](schedulers(fb), opt)
    opt.load_state_dict(groups)
    second.load_state_dict(saved)
    for step in range(5, 11):
        opt.step()
        second.step()
        assert close([*snapshot(opt), second.get_last_lr()], whole[step])


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CLOSED)
def test_closed_form(name):
    def run(library):
        opt = optimizer(library)
        scheduler = BUILD[name](schedulers(library), opt)
        out = []
        for epoch in (3, 0, 7, 2, 9, 11):
            opt.step()
            scheduler.step(epoch)
            out.append([*snapshot(opt), scheduler.last_epoch])
        return out

    assert close(run(fb), run(torch))


COMPOSED = {
    "warmup": lambda s, o: s.SequentialLR(
        o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)], [3]
    ),
    "three": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o, 0.1, 1.0, 3), s.CosineAnnealingLR(o, 4, 0.01), s.StepLR(o, 2)], [3, 9]
    ),
    "lambda": lambda s, o: s.SequentialLR(
        o, [s.LambdaLR(o, lambda e: e + 1), s.MultiplicativeLR(o, lambda e: 0.9)], [4]
    ),
    "restarts": lambda s, o: s.SequentialLR(
        o, [s.LinearLR(o), s.CosineAnnealingWarmRestarts(o, 3)], [5]
    ),
    "nested": lambda s, o: s.SequentialLR(
        o,
        [s.SequentialLR(o, [s.ConstantLR(o), s.StepLR(o, 1)], [2]), s.ExponentialLR(o, 0.5)],
        [5],
    ),
    "chain": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)]),
    "chain of three": lambda s, o: s.ChainedScheduler(
        [s.StepLR(o, 2), s.LinearLR(o), s.MultiplicativeLR(o, lambda e: 0.95)], o
    ),
    "chain in sequence": lambda s, o: s.SequentialLR(
        o, [s.ChainedScheduler([s.ConstantLR(o), s.StepLR(o, 1)]), s.ExponentialLR(o, 0.5)], [5]
    ),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", COMPOSED)
def test_composed(name):
    mine, my_scheduler = course(fb, COMPOSED[name], 12)
    theirs, their_scheduler = course(torch, COMPOSED[name], 12)
    for step, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        assert close(a, b), step
    a, b = plain(my_scheduler.state_dict()), plain(their_scheduler.state_dict())
    assert set(a) == set(b)


METRICS = [1.0, 0.9, 0.9, 0.9, 0.8, 0.8, 0.8, 0.8, 0.8, 0.8, 0.79995, 0.7, 0.7, 0.7, 0.7, 0.7]


@pytest.mark.parametrize(
    "flags",
    [
        {"patience": 1},
        {"patience": 0, "factor": 0.5, "cooldown": 2},
        {"mode": "max", "patience": 2, "threshold": 0.05, "threshold_mode": "abs"},
        {"mode": "max", "patience": 1, "min_lr": [0.01, 0.1]},
        {"threshold_mode": "abs", "threshold": 0.15, "patience": 1, "min_lr": 0.02},
    ],
    ids=str,
)
def test_plateau(flags):
    def run(library):
        opt = optimizer(library)
        scheduler = schedulers(library).ReduceLROnPlateau(opt, **flags)
        out = []
        for metric in METRICS:
            scheduler.step(library.tensor(metric))
            out.append([*snapshot(opt), scheduler.num_bad_epochs, scheduler.best])
        return out, scheduler

    (mine, my_scheduler), (theirs, their_scheduler) = run(fb), run(torch)
    assert close(mine, theirs)
    assert set(my_scheduler.state_dict()) == set(their_scheduler.state_dict())


@pytest.mark.parametrize("name", ["StepLR", "CosineAnnealingLR", "OneCycleLR", "ExponentialLR"])
def test_a_tensor_rate_is_filled_in_place(name):
    def run(library):
        rate = library.tensor(0.1)
        p = library.zeros(2, requires_grad=True)
        opt = library.optim.Adam([p], lr=rate)
        build = BUILD[name] if name != "OneCycleLR" else lambda s, o: s.OneCycleLR(o, 0.5, 20)
        scheduler = build(schedulers(library), opt)
        out = []
        for _ in range(6):
            opt.step()
            scheduler.step()
            out.append(float(opt.param_groups[0]["lr"]))
        assert opt.param_groups[0]["lr"] is rate
        return out

    assert run(fb) == pytest.approx(run(torch), rel=1e-6)


BAD = {
    "no optimizer": (lambda s, o: s.StepLR(3, 1), TypeError),
    "no optimizer to plateau": (lambda s, o: s.ReduceLROnPlateau(3), TypeError),
    "no initial_lr": (lambda s, o: s.StepLR(o, 1, last_epoch=3), KeyError),
    "lambdas": (lambda s, o: s.LambdaLR(o, [lambda e: e] * 3), ValueError),
    "factor": (lambda s, o: s.ConstantLR(o, 2), ValueError),
    "start_factor": (lambda s, o: s.LinearLR(o, 2), ValueError),
    "end_factor": (lambda s, o: s.LinearLR(o, 0.5, 2), ValueError),
    "plateau factor": (lambda s, o: s.ReduceLROnPlateau(o, factor=1), ValueError),
    "plateau mode": (lambda s, o: s.ReduceLROnPlateau(o, mode="x"), ValueError),
    "plateau threshold": (lambda s, o: s.ReduceLROnPlateau(o, threshold_mode="x"), ValueError),
    "plateau min_lr": (lambda s, o: s.ReduceLROnPlateau(o, min_lr=[1, 2, 3]), ValueError),
    "cyclic mode": (lambda s, o: s.CyclicLR(o, 0.1, 1, mode="x"), ValueError),
    "cyclic groups": (lambda s, o: s.CyclicLR(o, [0.1, 0.2, 0.3], 1), ValueError),
    "one cycle steps": (lambda s, o: s.OneCycleLR(o, 0.1), ValueError),
    "one cycle total": (lambda s, o: s.OneCycleLR(o, 0.1, total_steps=-1), ValueError),
    "one cycle epochs": (
        lambda s, o: s.OneCycleLR(o, 0.1, epochs=-1, steps_per_epoch=3),
        ValueError,
    ),
    "one cycle pct": (lambda s, o: s.OneCycleLR(o, 0.1, 10, pct_start=2), ValueError),
    "one cycle anneal": (lambda s, o: s.OneCycleLR(o, 0.1, 10, anneal_strategy="x"), ValueError),
    "T_0": (lambda s, o: s.CosineAnnealingWarmRestarts(o, 0), ValueError),
    "T_mult": (lambda s, o: s.CosineAnnealingWarmRestarts(o, 1, 0), ValueError),
    "negative epoch": (lambda s, o: s.CosineAnnealingWarmRestarts(o, 1).step(-1), ValueError),
    "no members": (lambda s, o: s.SequentialLR(o, [], []), ValueError),
    "milestones": (lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1)], [2]), ValueError),
    "member type": (lambda s, o: s.SequentialLR(o, [s.StepLR(o, 1), 3], [2]), TypeError),
    "empty chain": (lambda s, o: s.ChainedScheduler([]), ValueError),
    "chain member": (lambda s, o: s.ChainedScheduler([s.StepLR(o, 1), 3]), TypeError),
    "plateau in chain": (
        lambda s, o: s.ChainedScheduler([s.StepLR(o, 1), s.ReduceLROnPlateau(o)]),
        ValueError,
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name):
    build, error = BAD[name]
    for library in (torch, fb):
        with pytest.raises(error):
            build(schedulers(library), optimizer(library))


def test_momentum_cycles_need_a_momentum():
    for library in (torch, fb):
        opt = optimizer(library, "Adagrad")
        with pytest.raises(ValueError, match="momentum"):
            schedulers(library).OneCycleLR(opt, 0.1, 10)
        schedulers(library).OneCycleLR(opt, 0.1, 10, cycle_momentum=False)


def test_one_cycle_ends():
    for library in (torch, fb):
        opt = optimizer(library)
        scheduler = schedulers(library).OneCycleLR(opt, 0.1, 3)
        with pytest.raises(ValueError):
            for _ in range(4):
                opt.step()
                scheduler.step()


def test_swalr():
    def run(library, **flags):
        opt = optimizer(library)
        scheduler = library.optim.swa_utils.SWALR(opt, **flags)
        out = []
        for _ in range(8):
            opt.step()
            scheduler.step()
            out.append(snapshot(opt))
        return out

    for flags in (
        {"swa_lr": 0.05},
        {"swa_lr": [0.01, 0.02], "anneal_epochs": 5, "anneal_strategy": "linear"},
        {"swa_lr": 0.05, "anneal_epochs": 0},
    ):
        assert close(run(fb, **flags), run(torch, **flags))


@pytest.mark.parametrize(
    "flags",
    [{"anneal_strategy": "x"}, {"anneal_epochs": -1}, {"swa_lr": [0.1, 0.2, 0.3]}],
    ids=str,
)
def test_swalr_refuses(flags):
    for library in (torch, fb):
        with pytest.raises(ValueError):
            library.optim.swa_utils.SWALR(optimizer(library), **{"swa_lr": 0.1, **flags})


def test_warnings_come_at_the_same_places():
    def run(library):
        caught = []
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            opt = optimizer(library)
            scheduler = schedulers(library).ExponentialLR(opt, 0.9)
            scheduler.step()
            caught.append(len(seen))
            opt.step()
            scheduler.step()
            caught.append(len(seen))
            scheduler.get_lr()
            caught.append(len(seen))
            scheduler.step(3)
            caught.append(len(seen))
        return caught

    assert run(fb) == run(torch)
