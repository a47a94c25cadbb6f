"""The base class: groups, hooks, checkpoints, errors."""

import copy
import pickle

import pytest

import flambeau as fb
from flambeau import optim
from flambeau.optim import optimizer as optimizer_module


def parameter(*values):
    return fb.tensor(list(values), requires_grad=True)


def with_gradients(*params):
    for p in params:
        p.grad = fb.ones_like(p)
    return params


def test_groups_fill_in_defaults_and_keep_their_own_options():
    a, b = parameter(1.0), parameter(2.0)
    opt = optim.SGD([{"params": a}, {"params": [b], "lr": 0.5}], lr=0.1, momentum=0.9)
    assert [g["lr"] for g in opt.param_groups] == [0.1, 0.5]
    assert [g["momentum"] for g in opt.param_groups] == [0.9, 0.9]
    assert opt.param_groups[0]["params"] == [a]


def test_each_group_steps_by_its_own_rate():
    a, b = parameter(1.0), parameter(1.0)
    opt = optim.SGD([{"params": [a]}, {"params": [b], "lr": 0.5}], lr=0.1)
    with_gradients(a, b)
    opt.step()
    assert a.tolist() == pytest.approx([0.9])
    assert b.tolist() == [0.5]


def test_a_group_added_later_is_updated():
    a, b = parameter(1.0), parameter(1.0)
    opt = optim.Adagrad([a], lr=0.1)
    opt.add_param_group({"params": b, "lr": 1.0})
    with_gradients(a, b)
    opt.step()
    assert b.tolist() == pytest.approx([0.0])


def test_names_are_kept_and_checkpointed():
    a, b = parameter(1.0), parameter(2.0)
    opt = optim.SGD([("a", a), ("b", b)], lr=0.1)
    assert opt.param_groups[0]["param_names"] == ["a", "b"]
    assert opt.state_dict()["param_groups"][0]["param_names"] == ["a", "b"]


def test_state_dict_numbers_parameters_through_the_groups():
    a, b, c = parameter(1.0), parameter(2.0), parameter(3.0)
    opt = optim.Adam([{"params": [a, b]}, {"params": [c]}])
    with_gradients(a, c)
    opt.step()
    saved = opt.state_dict()
    assert [g["params"] for g in saved["param_groups"]] == [[0, 1], [2]]
    assert list(saved["state"]) == [0, 2]


def test_load_state_dict_casts_state_but_not_steps():
    p = parameter(1.0, 2.0)
    opt = optim.Adam([p])
    with_gradients(p)
    opt.step()
    wide = fb.tensor([1.0, 2.0], dtype=fb.float64, requires_grad=True)
    other = optim.Adam([wide])
    other.load_state_dict(opt.state_dict())
    state = other.state[wide]
    assert state["exp_avg"].dtype is fb.float64
    assert state["step"].dtype is fb.float32


def test_load_state_dict_completes_options_of_older_checkpoints():
    p = parameter(1.0)
    opt = optim.Adam([p])
    saved = opt.state_dict()
    for key in ("maximize", "fused", "decoupled_weight_decay"):
        del saved["param_groups"][0][key]
    saved["state"] = {
        0: {"step": 3, "exp_avg": fb.zeros(1), "exp_avg_sq": fb.zeros(1)},
    }
    opt.load_state_dict(saved)
    assert opt.param_groups[0]["maximize"] is False
    assert opt.state[p]["step"].tolist() == 3.0
    with_gradients(p)
    opt.step()
    assert opt.state[p]["step"].tolist() == 4.0


def test_loading_does_not_change_the_checkpoint():
    p = parameter(1.0)
    opt = optim.SGD([p], lr=0.1, momentum=0.9)
    saved = opt.state_dict()
    before = copy.deepcopy(saved["param_groups"])
    opt.load_state_dict(saved)
    assert saved["param_groups"] == before


def test_pickle_and_deepcopy_keep_parameters_and_state_together():
    p = parameter(1.0, 2.0)
    opt = optim.Adam([p], lr=0.1)
    with_gradients(p)
    opt.step()
    for made in (pickle.loads(pickle.dumps(opt)), copy.deepcopy(opt)):
        (q,) = made.param_groups[0]["params"]
        assert q is not p
        assert q.tolist() == p.tolist()
        assert made.state[q]["exp_avg"].tolist() == opt.state[p]["exp_avg"].tolist()
        with_gradients(q)
        made.step()
        assert made.state[q]["step"].item() == 2


def test_zero_grad_drops_or_zeroes():
    p, unused = parameter(1.0), parameter(1.0)
    opt = optim.SGD([p, unused], lr=0.1)
    with_gradients(p)
    grad = p.grad
    opt.zero_grad(set_to_none=False)
    assert p.grad is grad
    assert grad.tolist() == [0.0]
    opt.zero_grad()
    assert p.grad is None


def test_step_without_gradients_does_nothing():
    p = parameter(1.0)
    opt = optim.Adam([p])
    assert opt.step() is None
    assert not opt.state


def test_the_closure_runs_with_gradients_and_its_loss_comes_back():
    p = parameter(2.0)
    opt = optim.SGD([p], lr=0.1)

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with fb.no_grad():
        loss = opt.step(closure)
    assert loss.item() == 4.0
    assert p.tolist() == pytest.approx([1.6])


def test_step_hooks_see_and_change_arguments():
    p = parameter(1.0)
    opt = optim.SGD([p], lr=0.1)
    seen = []
    first = opt.register_step_pre_hook(lambda o, args, kwargs: seen.append(("pre", args, kwargs)))
    opt.register_step_post_hook(lambda o, args, kwargs: seen.append(("post", args, kwargs)))
    with_gradients(p)
    opt.step()
    assert seen == [("pre", (), {}), ("post", (), {})]
    first.remove()
    opt.register_step_pre_hook(lambda o, args, kwargs: ((lambda: 7,), {}))
    assert opt.step() == 7
    assert seen[2:] == [("post", ((seen[2][1][0],)), {})]


def test_hooks_run_once_when_a_subclass_calls_super():
    class Logging(optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    p = parameter(1.0)
    opt = Logging([p], lr=0.1)
    calls = []
    opt.register_step_post_hook(lambda *_: calls.append(1))
    opt.step()
    assert calls == [1]


def test_hooks_of_all_optimizers():
    p = parameter(1.0)
    opt = optim.SGD([p], lr=0.1)
    calls = []
    handles = [
        optimizer_module.register_optimizer_step_pre_hook(lambda *_: calls.append("pre")),
        optimizer_module.register_optimizer_step_post_hook(lambda *_: calls.append("post")),
    ]
    opt.step()
    for handle in handles:
        handle.remove()
    opt.step()
    assert calls == ["pre", "post"]


def test_checkpoint_hooks():
    p = parameter(1.0)
    opt = optim.SGD([p], lr=0.1)
    order = []
    opt.register_state_dict_pre_hook(lambda o: order.append("a"))
    opt.register_state_dict_pre_hook(lambda o: order.append("b"), prepend=True)
    opt.register_state_dict_post_hook(lambda o, saved: {**saved, "note": 1})
    saved = opt.state_dict()
    assert order == ["b", "a"]
    assert saved["note"] == 1
    opt.register_load_state_dict_pre_hook(lambda o, d: {**d, "param_groups": d["param_groups"]})
    opt.register_load_state_dict_post_hook(lambda o: order.append("loaded"))
    opt.load_state_dict(saved)
    assert order[-1] == "loaded"


def test_users_own_optimizers():
    class Signed(optim.Optimizer):
        def __init__(self, params, lr=0.5):
            super().__init__(params, {"lr": lr})

        @fb.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad.sign(), alpha=-group["lr"])
                    self.state[p]["seen"] = True

    p = parameter(1.0, -1.0)
    opt = Signed([p])
    p.grad = fb.tensor([3.0, -2.0])
    opt.step()
    assert p.tolist() == [0.5, -0.5]
    assert opt.state_dict()["state"] == {0: {"seen": True}}
    optim.lr_scheduler.ExponentialLR(opt, 0.5).step()
    assert opt.param_groups[0]["lr"] == 0.25


def test_a_tensor_rate_is_read_at_every_step():
    p = parameter(1.0)
    rate = fb.tensor(0.5)
    opt = optim.SGD([p], lr=rate)
    with_gradients(p)
    opt.step()
    rate.fill_(0.25)
    opt.step()
    assert p.tolist() == [0.25]


ERRORS = {
    "a tensor for params": (
        lambda: optim.SGD(parameter(1.0), lr=1),
        TypeError,
        r"SGD: params must be an iterable of tensors or dicts; got params=one Tensor. Write SGD",
    ),
    "no params": (lambda: optim.SGD([], lr=1), ValueError, "at least one parameter"),
    "a number": (lambda: optim.SGD([1], lr=1), TypeError, "must be a Tensor; got param=int"),
    "a set": (
        lambda: optim.SGD([{"params": {parameter(1.0)}}], lr=1),
        TypeError,
        "must have an order; got params=a set. Use a list",
    ),
    "no params key": (lambda: optim.SGD([{"param": []}], lr=1), KeyError, "params"),
    "not a leaf": (
        lambda: optim.SGD([parameter(1.0) * 2], lr=1),
        ValueError,
        "must be a leaf tensor",
    ),
    "half named": (
        lambda: optim.SGD([("a", parameter(1.0)), parameter(1.0)], lr=1),
        ValueError,
        "must have names, or none",
    ),
    "rate": (lambda: optim.SGD([parameter(1.0)], lr=-1), ValueError, "lr must be at least 0; got"),
    "rate tensor": (
        lambda: optim.SGD([parameter(1.0)], lr=fb.ones(2)),
        ValueError,
        "a tensor lr must have one element",
    ),
    "nan": (lambda: optim.Adam([parameter(1.0)], eps=float("nan")), ValueError, "eps must be"),
    "betas": (
        lambda: optim.Adam([parameter(1.0)], betas=(0.9, 1.0)),
        ValueError,
        r"betas\[1\] must be in \[0, 1\); got betas=1.0",
    ),
    "flags": (
        lambda: optim.AdamW([parameter(1.0)], fused=True, foreach=True),
        RuntimeError,
        "AdamW: fused and foreach exclude each other",
    ),
    "group type": (
        lambda: optim.SGD([parameter(1.0)], lr=1).add_param_group([1]),
        TypeError,
        "param_group must be a dict; got param_group=list",
    ),
    "no step": (
        lambda: optim.Optimizer([parameter(1.0)], {}).step(),
        NotImplementedError,
        "a subclass must define it",
    ),
    "matrices": (
        lambda: optim.Muon([parameter(1.0)]),
        ValueError,
        r"parameters must be matrices; got shape=\(1,\). Give the others to AdamW",
    ),
    "two groups": (
        lambda: optim.LBFGS([{"params": parameter(1.0)}, {"params": parameter(1.0)}]),
        ValueError,
        "all parameters share one group",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error_texts(name):
    act, error, text = ERRORS[name]
    with pytest.raises(error, match=text):
        act()


def test_a_parameter_belongs_to_one_group():
    p, q = parameter(1.0), parameter(1.0)
    opt = optim.SGD([p], lr=1)
    with pytest.raises(ValueError, match="one parameter group only"):
        opt.add_param_group({"params": p})
    with pytest.warns(UserWarning, match="holds a parameter twice"):
        opt.add_param_group({"params": [q, q]})
    with pytest.raises(ValueError, match="all parameter groups must have names, or none"):
        opt.add_param_group({"params": [("a", parameter(1.0))]})


def test_checkpoints_of_other_sizes_are_refused():
    opt = optim.SGD([parameter(1.0)], lr=1)
    for groups in ([], [{"params": [0, 1]}]):
        with pytest.raises(ValueError, match="must have the optimizer's parameter groups"):
            opt.load_state_dict({"state": {}, "param_groups": groups})


def test_a_required_option_must_come_from_every_group():
    class Own(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": optimizer_module.required})

    with pytest.raises(ValueError, match="every parameter group must give lr"):
        Own([parameter(1.0)])
    assert Own([{"params": parameter(1.0), "lr": 1}]).param_groups[0]["lr"] == 1


def test_muon_pushes_singular_values_towards_one():
    p = fb.eye(4).requires_grad_()
    opt = optim.Muon([p], lr=1.0, weight_decay=0.0, momentum=0.0, nesterov=False)
    fb.manual_seed(0)
    p.grad = fb.randn(4, 4)
    opt.step()
    step = fb.eye(4) - p.detach()
    gram = step @ step.T
    assert gram.diagonal().min().item() > 0.3
    assert gram.diagonal().max().item() < 1.6


def test_sparse_gradients_touch_their_rows_only():
    p = fb.ones(4, 2).requires_grad_()
    opt = optim.SparseAdam([p], lr=0.1)
    p.grad = fb.sparse_coo_tensor([[1, 1, 3]], fb.ones(3, 2), (4, 2))
    opt.step()
    assert p[0].tolist() == p[2].tolist() == [1.0, 1.0]
    assert p[1].tolist() == pytest.approx([0.9, 0.9])
    assert opt.state[p]["exp_avg"][1].tolist() == pytest.approx([0.2, 0.2])
