"""Every module: PyTorch's signature, text form, state_dict, initial weights, results, gradients."""

import inspect
import warnings

import numpy as np
import pytest

import flambeau as fb

torch = pytest.importorskip("torch")


def floats(*shape):
    return ("floats", shape)


def positive(*shape):
    return ("positive", shape)


def signs(*shape):
    return ("signs", shape)


def classes(n, *shape):
    return ("classes", shape, n)


IMAGE = floats(2, 4, 6, 5)
# (module, arguments, keyword arguments, inputs)
CASES = [
    ("Identity", (3,), {}, [floats(2, 3)]),
    ("Linear", (3, 4), {}, [floats(2, 3)]),
    ("Linear", (3, 4), {"bias": False}, [floats(5, 2, 3)]),
    ("Bilinear", (3, 4, 5), {}, [floats(2, 3), floats(2, 4)]),
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1, "dilation": 2}, [floats(2, 4, 9)]),
    ("Conv2d", (4, 6, (3, 2)), {"groups": 2, "bias": False}, [IMAGE]),
    ("Conv2d", (4, 6, 3), {"padding": "same", "padding_mode": "reflect"}, [IMAGE]),
    ("Conv2d", (4, 6, 3), {"padding": 1, "padding_mode": "circular"}, [floats(4, 6, 5)]),
    ("Conv3d", (2, 3, 2), {}, [floats(1, 2, 3, 4, 3)]),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "output_padding": 1}, [floats(2, 4, 5)]),
    ("ConvTranspose2d", (4, 6, 3), {"groups": 2, "dilation": 2}, [IMAGE]),
    ("ConvTranspose3d", (2, 3, 2), {"padding": 1}, [floats(1, 2, 3, 4, 3)]),
    ("BatchNorm1d", (4,), {}, [floats(3, 4)]),
    ("BatchNorm1d", (4,), {"momentum": None}, [floats(3, 4, 5)]),
    ("BatchNorm2d", (4,), {"affine": False}, [IMAGE]),
    ("BatchNorm2d", (4,), {"track_running_stats": False, "bias": False}, [IMAGE]),
    ("BatchNorm3d", (2,), {}, [floats(2, 2, 3, 2, 2)]),
    ("SyncBatchNorm", (4,), {}, [floats(3, 4)]),
    ("InstanceNorm1d", (4,), {"affine": True}, [floats(2, 4, 5)]),
    ("InstanceNorm2d", (4,), {"track_running_stats": True}, [IMAGE]),
    ("InstanceNorm2d", (4,), {}, [floats(4, 6, 5)]),
    ("InstanceNorm3d", (2,), {}, [floats(2, 2, 3, 2, 2)]),
    ("LayerNorm", (5,), {}, [floats(2, 3, 5)]),
    ("LayerNorm", ((3, 5),), {"bias": False}, [floats(2, 3, 5)]),
    ("RMSNorm", (5,), {}, [floats(2, 3, 5)]),
    ("GroupNorm", (2, 4), {}, [IMAGE]),
    ("LocalResponseNorm", (2,), {}, [IMAGE]),
    ("CrossMapLRN2d", (3,), {}, [IMAGE]),
    ("Dropout", (0.3,), {}, [floats(4, 50)]),
    ("Dropout1d", (0.3,), {}, [floats(4, 5, 3)]),
    ("Dropout2d", (0.3,), {}, [IMAGE]),
    ("Dropout3d", (0.3,), {}, [floats(2, 2, 3, 2, 2)]),
    ("AlphaDropout", (0.3,), {}, [floats(4, 50)]),
    ("FeatureAlphaDropout", (0.3,), {}, [IMAGE]),
    ("Embedding", (7, 3), {"padding_idx": -1}, [classes(7, 4, 2)]),
    ("EmbeddingBag", (7, 3), {"mode": "sum"}, [classes(7, 4, 2)]),
    ("EmbeddingBag", (7, 3), {"mode": "max"}, [classes(7, 4, 2)]),
    ("CELU", (), {"alpha": 0.7}, [floats(9)]),
    ("ELU", (), {"inplace": True}, [floats(9)]),
    ("GELU", (), {}, [floats(9)]),
    ("GELU", ("tanh",), {}, [floats(9)]),
    ("GLU", (), {"dim": 0}, [floats(4, 3)]),
    ("Hardshrink", (), {}, [floats(9)]),
    ("Hardsigmoid", (), {}, [floats(9)]),
    ("Hardswish", (), {}, [floats(9)]),
    ("Hardtanh", (-0.5, 0.7), {}, [floats(9)]),
    ("LeakyReLU", (0.2,), {}, [floats(9)]),
    ("LogSigmoid", (), {}, [floats(9)]),
    ("LogSoftmax", (1,), {}, [floats(3, 4)]),
    ("Mish", (), {}, [floats(9)]),
    ("PReLU", (4,), {}, [IMAGE]),
    ("RReLU", (), {}, [floats(9)]),
    ("ReLU", (), {}, [floats(9)]),
    ("ReLU", (True,), {}, [floats(9)]),
    ("ReLU6", (), {}, [floats(9)]),
    ("SELU", (), {}, [floats(9)]),
    ("SiLU", (), {}, [floats(9)]),
    ("Sigmoid", (), {}, [floats(9)]),
    ("Softmax", (0,), {}, [floats(3, 4)]),
    ("Softmax2d", (), {}, [IMAGE]),
    ("Softmin", (1,), {}, [floats(3, 4)]),
    ("Softplus", (2.0, 1.0), {}, [floats(9)]),
    ("Softshrink", (), {}, [floats(9)]),
    ("Softsign", (), {}, [floats(9)]),
    ("Tanh", (), {}, [floats(9)]),
    ("Tanhshrink", (), {}, [floats(9)]),
    ("Threshold", (0.1, 7.0), {}, [floats(9)]),
    ("MaxPool1d", (3,), {"stride": 2, "padding": 1}, [floats(2, 4, 9)]),
    ("MaxPool2d", ((3, 2),), {"ceil_mode": True}, [IMAGE]),
    ("MaxPool3d", (2,), {}, [floats(1, 2, 4, 4, 4)]),
    ("AvgPool1d", (3,), {"stride": 2}, [floats(2, 4, 9)]),
    ("AvgPool2d", (2,), {"padding": 1, "count_include_pad": False}, [IMAGE]),
    ("AvgPool3d", (2,), {"divisor_override": 3}, [floats(1, 2, 4, 4, 4)]),
    ("LPPool1d", (2, 3), {}, [positive(2, 4, 9)]),
    ("LPPool2d", (2, 3), {"stride": 1}, [positive(2, 4, 6, 5)]),
    ("LPPool3d", (2, 2), {}, [positive(1, 2, 4, 4, 4)]),
    ("FractionalMaxPool2d", (2,), {"output_size": (3, 2)}, [IMAGE]),
    ("FractionalMaxPool3d", (2,), {"output_ratio": 0.5}, [floats(1, 2, 6, 6, 6)]),
    ("AdaptiveMaxPool1d", (3,), {}, [floats(2, 4, 7)]),
    ("AdaptiveMaxPool2d", ((3, 2),), {}, [IMAGE]),
    ("AdaptiveMaxPool3d", (2,), {}, [floats(1, 2, 4, 4, 4)]),
    ("AdaptiveAvgPool1d", (3,), {}, [floats(2, 4, 7)]),
    ("AdaptiveAvgPool2d", ((None, 2),), {}, [IMAGE]),
    ("AdaptiveAvgPool3d", (2,), {}, [floats(1, 2, 4, 4, 4)]),
    ("ConstantPad1d", ((1, 2), 3.0), {}, [floats(2, 4, 5)]),
    ("ConstantPad2d", (1, 3.0), {}, [IMAGE]),
    ("ConstantPad3d", (1, 3.0), {}, [floats(1, 2, 3, 3, 3)]),
    ("ZeroPad1d", (1,), {}, [floats(2, 4, 5)]),
    ("ZeroPad2d", ((1, 0, 2, -1),), {}, [IMAGE]),
    ("ZeroPad3d", (1,), {}, [floats(1, 2, 3, 3, 3)]),
    ("ReflectionPad1d", (2,), {}, [floats(2, 4, 5)]),
    ("ReflectionPad2d", (1,), {}, [IMAGE]),
    ("ReflectionPad3d", (1,), {}, [floats(1, 2, 3, 3, 3)]),
    ("ReplicationPad1d", (2,), {}, [floats(2, 4, 5)]),
    ("ReplicationPad2d", (1,), {}, [IMAGE]),
    ("ReplicationPad3d", (1,), {}, [floats(1, 2, 3, 3, 3)]),
    ("CircularPad1d", (2,), {}, [floats(2, 4, 5)]),
    ("CircularPad2d", (1,), {}, [IMAGE]),
    ("CircularPad3d", (1,), {}, [floats(1, 2, 3, 3, 3)]),
    ("Upsample", (), {"scale_factor": 2}, [IMAGE]),
    ("Upsample", ((3, 7),), {"mode": "bicubic", "align_corners": True}, [IMAGE]),
    ("UpsamplingNearest2d", (), {"size": (3, 9)}, [IMAGE]),
    ("UpsamplingBilinear2d", (), {"scale_factor": 1.5}, [IMAGE]),
    ("PixelShuffle", (2,), {}, [IMAGE]),
    ("PixelUnshuffle", (2,), {}, [floats(1, 2, 4, 6)]),
    ("ChannelShuffle", (2,), {}, [IMAGE]),
    ("Fold", ((4, 5), (2, 2)), {}, [floats(1, 8, 12)]),
    ("Unfold", ((2, 3),), {"padding": 1}, [IMAGE]),
    ("Flatten", (), {"end_dim": 2}, [IMAGE]),
    ("Unflatten", (1, (2, 2)), {}, [IMAGE]),
    ("PairwiseDistance", (), {"keepdim": True}, [floats(3, 4), floats(3, 4)]),
    ("CosineSimilarity", (), {}, [floats(3, 4), floats(3, 4)]),
    ("L1Loss", (), {}, [floats(3, 4), floats(3, 4)]),
    ("MSELoss", (), {"reduction": "sum"}, [floats(3, 4), floats(3, 4)]),
    ("SmoothL1Loss", (), {"beta": 0.5}, [floats(3, 4), floats(3, 4)]),
    ("HuberLoss", (), {"delta": 0.5}, [floats(3, 4), floats(3, 4)]),
    ("NLLLoss", (), {"ignore_index": 1}, [floats(5, 4), classes(4, 5)]),
    ("CrossEntropyLoss", (), {"label_smoothing": 0.1}, [floats(5, 4), classes(4, 5)]),
    ("LinearCrossEntropyLoss", (3, 4), {"bias": True}, [floats(5, 3), classes(4, 5)]),
    ("BCELoss", (), {}, [positive(3, 4), positive(3, 4)]),
    ("BCEWithLogitsLoss", (), {"reduction": "none"}, [floats(3, 4), positive(3, 4)]),
    ("PoissonNLLLoss", (), {"full": True}, [floats(3, 4), positive(3, 4)]),
    ("GaussianNLLLoss", (), {}, [floats(3, 4), floats(3, 4), positive(3, 4)]),
    ("KLDivLoss", (), {"reduction": "batchmean"}, [floats(3, 4), positive(3, 4)]),
    ("HingeEmbeddingLoss", (), {}, [floats(3, 4), signs(3, 4)]),
    ("SoftMarginLoss", (), {}, [floats(3, 4), signs(3, 4)]),
    ("MultiLabelMarginLoss", (), {}, [floats(3, 4), classes(4, 3, 4)]),
    ("MultiLabelSoftMarginLoss", (), {}, [floats(3, 4), positive(3, 4)]),
    ("MultiMarginLoss", (), {"p": 2}, [floats(3, 4), classes(4, 3)]),
    ("CosineEmbeddingLoss", (), {"margin": 0.1}, [floats(3, 4), floats(3, 4), signs(3)]),
    ("MarginRankingLoss", (), {"margin": 0.1}, [floats(3), floats(3), signs(3)]),
    ("TripletMarginLoss", (), {"swap": True}, [floats(3, 4)] * 3),
    ("TripletMarginWithDistanceLoss", (), {}, [floats(3, 4)] * 3),
    ("AdaptiveLogSoftmaxWithLoss", (16, 10, [2, 5]), {}, [floats(8, 16), classes(10, 8)]),
    ("RNN", (3, 5), {"nonlinearity": "relu", "num_layers": 2}, [floats(4, 2, 3)]),
    ("GRU", (3, 5), {"bidirectional": True, "batch_first": True}, [floats(2, 4, 3)]),
    ("LSTM", (3, 5, 2), {"proj_size": 2, "bidirectional": True}, [floats(4, 2, 3)]),
    ("LSTM", (3, 5, 3), {"dropout": 0.4, "bias": False}, [floats(4, 3)]),
    ("RNNCell", (3, 5), {}, [floats(2, 3), floats(2, 5)]),
    ("GRUCell", (3, 5), {"bias": False}, [floats(2, 3)]),
    ("LSTMCell", (3, 5), {}, [floats(3)]),
    ("MultiheadAttention", (6, 2), {}, [floats(4, 2, 6), floats(5, 2, 6), floats(5, 2, 6)]),
    (
        "MultiheadAttention",
        (6, 2),
        {"kdim": 3, "vdim": 5, "add_bias_kv": True, "add_zero_attn": True, "batch_first": True},
        [floats(2, 4, 6), floats(2, 5, 3), floats(2, 5, 5)],
    ),
    ("TransformerEncoderLayer", (6, 2, 8), {"norm_first": True}, [floats(4, 2, 6)]),
    ("TransformerDecoderLayer", (6, 2, 8), {}, [floats(4, 2, 6), floats(5, 2, 6)]),
    (
        "Transformer",
        (6, 2, 2, 1, 8),
        {"batch_first": True, "activation": "gelu"},
        [floats(2, 4, 6), floats(2, 3, 6)],
    ),
]
IDS = [f"{name}-{i}" for i, (name, *_) in enumerate(CASES)]
# Results that go through other reductions or expansions than PyTorch's.
LOOSE = {"CrossMapLRN2d": 1e-4}


def value(rng, spec):
    kind, shape = spec[:2]
    if kind == "classes":
        return rng.integers(0, spec[2], shape)
    if kind == "signs":
        return rng.choice([-1.0, 1.0], shape).astype(np.float32)
    low = 0.05 if kind == "positive" else -1.0
    return rng.uniform(low, 0.95, shape).astype(np.float32)


def made(library, name, args, kwargs):
    library.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(library.nn, name)(*args, **kwargs)


def leaves(result):
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


def run(library, module, specs, inplace):
    """Outputs and the gradients of inputs and parameters, as arrays."""
    rng = np.random.default_rng(0)
    inputs = []
    for spec in specs:
        x = library.from_numpy(value(rng, spec))
        inputs.append(x.requires_grad_(not inputs) if spec[0] != "classes" else x)
    library.manual_seed(4)
    given = [x.clone() if inplace else x for x in inputs]
    outputs = [out for out in leaves(module(*given)) if out is not None]
    wanted = [x for x in inputs if x.requires_grad]
    wanted += [p for p in module.parameters() if p.requires_grad]
    total = sum((out * library.cos(out.detach())).sum() for out in outputs if out.requires_grad)
    grads = library.autograd.grad(total, wanted, allow_unused=True) if wanted else []
    return outputs, [g for g in grads if g is not None]


def close(ours, theirs, name):
    assert len(ours) == len(theirs)
    bound = LOOSE.get(name, 2e-5)
    for a, b in zip(ours, theirs, strict=True):
        assert str(a.dtype) == str(b.dtype)
        a, b = a.detach().numpy(), b.detach().numpy()
        np.testing.assert_allclose(a, b, rtol=bound, atol=bound * max(1, np.abs(b).max(initial=0)))


@pytest.mark.parametrize(("name", "args", "kwargs", "inputs"), CASES, ids=IDS)
def test_the_same_module(name, args, kwargs, inputs):
    ours, theirs = made(fb, name, args, kwargs), made(torch, name, args, kwargs)
    assert repr(ours) == repr(theirs)
    mine, other = ours.state_dict(), theirs.state_dict()
    assert list(mine) == list(other)
    for key in mine:
        assert np.array_equal(mine[key].numpy(), other[key].numpy()), key


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize(("name", "args", "kwargs", "inputs"), CASES, ids=IDS)
def test_the_same_results_and_gradients(name, args, kwargs, inputs, training):
    inplace = kwargs.get("inplace") or args == (True,)
    results = []
    for library in (fb, torch):
        module = made(library, name, args, kwargs).train(training)
        results.append((*run(library, module, inputs, inplace), module))
    (out, grads, ours), (out_, grads_, theirs) = results
    close(out, out_, name)
    close(grads, grads_, name)
    close(list(ours.state_dict().values()), list(theirs.state_dict().values()), name)


def is_module(name):
    kind = getattr(torch.nn, name)
    return isinstance(kind, type) and issubclass(kind, torch.nn.Module)


@pytest.mark.parametrize("name", [name for name in dir(torch.nn) if is_module(name)])
def test_the_same_signature(name):
    def parameters(library):
        given = inspect.signature(getattr(library.nn, name).__init__).parameters.values()
        return [(p.name, p.kind, "?" if callable(p.default) else p.default) for p in given]

    assert parameters(fb) == parameters(torch)


@pytest.mark.parametrize("part", ["init", "utils", "utils.rnn", "utils.parametrize", "attention"])
def test_every_public_name_is_there(part):
    ours, theirs = fb.nn, torch.nn
    for name in part.split("."):
        ours, theirs = getattr(ours, name), getattr(theirs, name)
    names = [n for n in theirs.__all__ if "flash_attention_impl" not in n]  # CUDA's own registry
    assert not [name for name in names if not hasattr(ours, name)]
