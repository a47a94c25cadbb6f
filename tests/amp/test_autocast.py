"""Regions: nesting, decorators, caching, threads, custom functions, the switches."""

import threading

import pytest

import flambeau as fb
from flambeau.amp import autocast, custom_bwd, custom_fwd
from flambeau.amp import settings as switches
from flambeau.tensor.overrides import modes, switch


def product_dtype():
    return (fb.ones(2, 2) @ fb.ones(2, 2)).dtype


def test_regions_nest_and_end():
    assert product_dtype() is fb.float32
    with autocast("cpu"):
        assert product_dtype() is fb.bfloat16
        with autocast("cpu", enabled=False):
            assert product_dtype() is fb.float32
            with autocast("cpu", dtype=fb.float16):
                assert product_dtype() is fb.float16
            assert product_dtype() is fb.float32
        assert product_dtype() is fb.bfloat16
    assert product_dtype() is fb.float32


def test_an_exception_ends_the_region():
    with pytest.raises(KeyError), autocast("cpu"):
        raise KeyError("x")
    assert product_dtype() is fb.float32
    assert not switches.is_autocast_enabled("cpu")


def test_nothing_is_left_switched_on():
    active, stack = switch.active, modes.stack
    with autocast("cpu"):
        assert switch.active
    assert switch.active == active
    assert modes.stack == stack


def test_decorator():
    @autocast("cpu", dtype=fb.float16)
    def product():
        """Doc."""
        return product_dtype()

    assert product() is product() is fb.float16
    assert product.__doc__ == "Doc."
    assert product_dtype() is fb.float32


def test_one_region_object_may_be_entered_again_inside():
    region = autocast("cpu")
    with region, region:
        assert product_dtype() is fb.bfloat16
    assert product_dtype() is fb.float32


def test_a_parameter_is_cast_once_a_region():
    w = fb.ones(2, 2, requires_grad=True)
    x = fb.ones(2, 2)
    with autocast("cpu"):
        x @ w
        (kept,) = switches.settings.cache.values()
        (x @ w).sum().backward()
        assert next(iter(switches.settings.cache.values())) is kept
    assert not switches.settings.cache
    assert w.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_the_cached_cast_follows_writes():
    w = fb.ones(2, 2, requires_grad=True)
    with autocast("cpu"):
        before = fb.eye(2) @ w
        with fb.no_grad():
            w.mul_(3)
        after = fb.eye(2) @ w
    assert before.tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert after.tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_casts_made_without_gradients_are_not_reused_with_them():
    w = fb.ones(2, 2, requires_grad=True)
    with autocast("cpu"):
        with fb.no_grad():
            fb.eye(2) @ w
        (fb.eye(2) @ w).sum().backward()
    assert w.grad is not None


def test_cache_enabled_false_keeps_nothing():
    w = fb.ones(2, 2, requires_grad=True)
    with autocast("cpu", cache_enabled=False):
        fb.eye(2) @ w
        assert not switches.settings.cache
    assert switches.is_autocast_cache_enabled()


def test_float64_and_integers_are_left_alone():
    with autocast("cpu"):
        assert (fb.eye(2, dtype=fb.float64) @ fb.eye(2, dtype=fb.float64)).dtype is fb.float64
        assert (fb.ones(2, 2, dtype=fb.int64) @ fb.ones(2, 2, dtype=fb.int64)).dtype is fb.int64


def test_out_and_in_place_are_left_alone():
    with autocast("cpu"):
        out = fb.empty(2, 2)
        fb.mm(fb.eye(2), fb.eye(2), out=out)
        assert out.dtype is fb.float32
        assert fb.eye(2).mul_(2).dtype is fb.float32


def test_other_threads_are_not_in_the_region():
    seen = []
    with autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(product_dtype()))
        thread.start()
        thread.join()
        assert product_dtype() is fb.bfloat16
    assert seen == [fb.float32]


def test_switches():
    assert switches.get_autocast_dtype("cpu") is fb.bfloat16
    assert switches.get_autocast_dtype("cuda") is fb.float16
    with autocast("cpu", dtype=fb.float16):
        assert switches.is_autocast_enabled("cpu")
        assert not switches.is_autocast_enabled()
        assert switches.get_autocast_dtype("cpu") is fb.float16
    assert switches.get_autocast_dtype("cpu") is fb.bfloat16


class Double(fb.autograd.Function):
    """Records the dtypes that it computes in."""

    seen: list = []

    @staticmethod
    @custom_fwd(device_type="cpu")
    def forward(ctx, x):
        Double.seen.append((x @ x).dtype)
        return x * 2

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, ct):
        Double.seen.append((fb.eye(2) @ fb.eye(2)).dtype)
        return ct * 2


class Wide(fb.autograd.Function):
    """Always computes in float32."""

    seen: list = []

    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=fb.float32)
    def forward(ctx, x):
        Wide.seen.append((x.dtype, (x @ x).dtype))
        return x * 2

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, ct):
        Wide.seen.append((fb.eye(2) @ fb.eye(2)).dtype)
        return ct * 2


def test_custom_backward_runs_in_the_state_of_forward():
    Double.seen.clear()
    x = fb.eye(2).requires_grad_()
    with autocast("cpu"):
        y = Double.apply(x).sum()
    y.backward()
    assert Double.seen == [fb.bfloat16, fb.bfloat16]
    Double.apply(x).sum().backward()
    assert Double.seen[2:] == [fb.float32, fb.float32]


def test_custom_forward_with_cast_inputs():
    Wide.seen.clear()
    x = fb.eye(2).bfloat16().requires_grad_()
    with autocast("cpu"):
        y = Wide.apply(x).sum()
    y.backward()
    assert Wide.seen == [(fb.float32, fb.float32), fb.float32]
    Wide.seen.clear()
    Wide.apply(x)
    assert Wide.seen == [(fb.bfloat16, fb.bfloat16)]


def test_older_names_warn():
    with pytest.warns(FutureWarning, match="deprecated"), fb.amp.cpu.autocast():
        assert product_dtype() is fb.bfloat16
    with pytest.warns(FutureWarning, match="deprecated"):
        fb.amp.cpu.GradScaler()
    with pytest.warns(FutureWarning), pytest.warns(UserWarning, match="not available"):
        fb.amp.cuda.autocast()
    with pytest.warns(FutureWarning), pytest.warns(UserWarning, match="not available"):
        assert fb.amp.cuda.GradScaler().state_dict() == {}


def test_error_texts_say_what_to_do():
    with pytest.raises(RuntimeError, match=r"device_type must be one of .*; got device_type=foo"):
        autocast("foo")
    with pytest.warns(UserWarning, match=r"dtype must be bfloat16 or float16; got dtype=.*float32"):
        autocast("cpu", dtype=fb.float32)
