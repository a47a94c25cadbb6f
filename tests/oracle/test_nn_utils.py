"""nn.utils: the same numbers, names and errors as PyTorch's."""

import copy

import numpy as np
import pytest

import flambeau as fb

torch = pytest.importorskip("torch")
LIBRARIES = (fb, torch)


def array(rng, *shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def with_gradients(library, *shapes):
    rng = np.random.default_rng(0)
    parameters = [library.nn.Parameter(library.from_numpy(array(rng, *s))) for s in shapes]
    for parameter in parameters:
        parameter.grad = library.from_numpy(array(rng, *parameter.shape) * 5)
    return parameters


def agree(results):
    for ours, theirs in zip(*results, strict=True):
        ours, theirs = ours.detach().numpy(), theirs.detach().numpy()
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("norm_type", [2.0, 1.0, float("inf"), 3.0])
def test_clip_grad_norm(norm_type):
    results = []
    for library in LIBRARIES:
        parameters = with_gradients(library, (3, 4), (5,))
        total = library.nn.utils.clip_grad_norm_(parameters, 1.5, norm_type)
        results.append([total, *(p.grad for p in parameters)])
    agree(results)


def test_clip_grad_norm_of_nothing_and_of_infinity():
    utils = fb.nn.utils
    assert utils.clip_grad_norm_([fb.nn.Parameter(fb.ones(2))], 1.0) == 0
    parameter = fb.nn.Parameter(fb.ones(2))
    parameter.grad = fb.tensor([float("inf"), 1.0])
    with pytest.raises(RuntimeError, match="finite"):
        utils.clip_grad_norm_(parameter, 1.0, error_if_nonfinite=True)
    assert utils.get_total_norm([fb.ones(4)]) == 2


def test_clip_grad_value_and_parameter_vectors():
    results = []
    for library in LIBRARIES:
        utils = library.nn.utils
        parameters = with_gradients(library, (3, 4), (5,))
        utils.clip_grad_value_(parameters, 0.5)
        vector = utils.parameters_to_vector(parameters)
        utils.vector_to_parameters(vector * 2, parameters)
        results.append([vector, *parameters, *(p.grad for p in parameters)])
    agree(results)


def rnn_batch(library):
    rng = np.random.default_rng(1)
    return [library.from_numpy(array(rng, n, 2)) for n in (4, 2, 3)]


@pytest.mark.parametrize("batch_first", [True, False])
def test_padding_and_packing(batch_first):
    results = []
    for library in LIBRARIES:
        rnn = library.nn.utils.rnn
        sequences = rnn_batch(library)
        padded = rnn.pad_sequence(sequences, batch_first, 7.0)
        left = rnn.pad_sequence(sequences, batch_first, padding_side="left")
        lengths = library.tensor([4, 2, 3])
        packed = rnn.pack_padded_sequence(padded, lengths, batch_first, enforce_sorted=False)
        again, sizes = rnn.pad_packed_sequence(packed, batch_first, 7.0, total_length=5)
        parts = rnn.unpad_sequence(padded.clone(), lengths, batch_first)  # PyTorch transposes it
        results.append([padded, left, *packed, again, sizes, *parts])
    agree(results)


def test_pack_sequence_round_trip():
    rnn = fb.nn.utils.rnn
    sequences = rnn_batch(fb)
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    for before, after in zip(sequences, rnn.unpack_sequence(packed), strict=True):
        assert before.tolist() == after.tolist()
    assert packed.to(fb.float64).data.dtype is fb.float64
    assert packed.double().batch_sizes is packed.batch_sizes
    with pytest.raises(RuntimeError, match="enforce_sorted=False"):
        rnn.pack_sequence(sequences)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_nets_take_packed_sequences(kind, bidirectional):
    results = []
    for library in LIBRARIES:
        library.manual_seed(0)
        net = getattr(library.nn, kind)(2, 3, num_layers=2, bidirectional=bidirectional)
        rnn = library.nn.utils.rnn
        packed = rnn.pack_sequence(rnn_batch(library), enforce_sorted=False)
        output, state = net(packed)
        states = list(state) if kind == "LSTM" else [state]
        total = output.data.cos().sum() + sum(s.sin().sum() for s in states)
        grads = library.autograd.grad(total, list(net.parameters()))
        results.append([output.data, *states, *grads])
    agree(results)


@pytest.mark.parametrize("transposed", [False, True])
def test_fusing_a_convolution_with_batch_norm(transposed):
    utils = fb.nn.utils
    kind = fb.nn.ConvTranspose2d if transposed else fb.nn.Conv2d
    conv, norm = kind(3, 4, 3, bias=False), fb.nn.BatchNorm2d(4)
    x = fb.randn(2, 3, 5, 5)
    norm(conv(x))
    conv.eval(), norm.eval()
    fused = utils.fuse_conv_bn_eval(conv, norm, transpose=transposed)
    np.testing.assert_allclose(
        fused(x).detach().numpy(), norm(conv(x)).detach().numpy(), rtol=1e-4, atol=1e-5
    )
    with pytest.raises(AssertionError, match="evaluation"):
        utils.fuse_conv_bn_eval(conv.train(), norm)


def test_fusing_a_linear_with_batch_norm():
    linear, norm = fb.nn.Linear(3, 4), fb.nn.BatchNorm1d(4)
    x = fb.randn(6, 3)
    norm(linear(x))
    fused = fb.nn.utils.fuse_linear_bn_eval(linear.eval(), norm.eval())
    np.testing.assert_allclose(
        fused(x).detach().numpy(), norm(linear(x)).detach().numpy(), rtol=1e-4, atol=1e-5
    )


def test_skip_init():
    fb.manual_seed(0)
    before = fb.get_rng_state()
    linear = fb.nn.utils.skip_init(fb.nn.Linear, 3, 4)
    assert linear.weight.device.type == "cpu" and tuple(linear.weight.shape) == (4, 3)
    assert fb.get_rng_state().tolist() == before.tolist()
    with pytest.raises(RuntimeError, match="device"):
        fb.nn.utils.skip_init(fb.nn.ReLU)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_by_hook(dim):
    results = []
    for library in LIBRARIES:
        library.manual_seed(0)
        layer = library.nn.utils.weight_norm(library.nn.Linear(3, 4), dim=dim)
        assert list(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
        out = layer(library.ones(2, 3)).cos().sum()
        grads = library.autograd.grad(out, list(layer.parameters()))
        state = list(layer.state_dict().values())
        library.nn.utils.remove_weight_norm(layer)
        assert list(layer.state_dict()) == ["bias", "weight"]
        results.append([out, *grads, *state, layer.weight])
    agree(results)
    with pytest.raises(ValueError, match="not found"):
        fb.nn.utils.remove_weight_norm(fb.nn.Linear(2, 2))


def test_spectral_norm_by_hook():
    results = []
    for library in LIBRARIES:
        library.manual_seed(0)
        layer = library.nn.utils.spectral_norm(library.nn.Linear(3, 4), n_power_iterations=2)
        assert list(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]
        out = layer(library.ones(2, 3)).cos().sum()
        grads = library.autograd.grad(out, list(layer.parameters()))
        state = list(layer.state_dict().values())
        library.nn.utils.remove_spectral_norm(layer.eval())
        results.append([out, *grads, *state, layer.weight])
    agree(results)


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_parametrizations(name):
    results = []
    for library in LIBRARIES:
        library.manual_seed(0)
        layer = library.nn.Conv1d(3, 4, 2)
        getattr(library.nn.utils.parametrizations, name)(layer)
        x = library.ones(2, 3, 5)
        out = layer(x).cos().sum()
        grads = library.autograd.grad(out, list(layer.parameters()))
        results.append([out, *grads, *layer.state_dict().values()])
        if library is fb:
            mine = layer
    assert list(mine.state_dict()) == list(layer.state_dict())
    assert repr(mine) == repr(layer)
    agree(results)


@pytest.mark.parametrize("map_", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5)])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal(map_, shape, trivial):
    results = []
    for library in LIBRARIES:
        library.manual_seed(0)
        layer = library.nn.Linear(shape[1], shape[0])
        orthogonal = library.nn.utils.parametrizations.orthogonal
        orthogonal(layer, orthogonal_map=map_, use_trivialization=trivial)
        out = layer(library.ones(2, shape[1])).cos().sum()
        grads = library.autograd.grad(out, list(layer.parameters()))
        results.append([layer.weight, *grads])
        if library is fb:
            w = layer.weight.detach()
            gram = w @ w.T if shape[0] < shape[1] else w.T @ w
            np.testing.assert_allclose(gram.numpy(), np.eye(min(shape)), atol=1e-5)
            if trivial:
                layer.weight = w
                np.testing.assert_allclose(layer.weight.detach().numpy(), w.numpy(), atol=1e-5)
    agree(results)


class Symmetric(fb.nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, x):
        return x.triu()


class Doubled(fb.nn.Module):
    def forward(self, x):
        return x * 2


def test_register_and_remove_parametrizations():
    parametrize = fb.nn.utils.parametrize
    layer = fb.nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, fb.nn.Linear)
    assert parametrize.is_parametrized(layer) and not parametrize.is_parametrized(layer, "bias")
    assert parametrize.type_before_parametrizations(layer) is fb.nn.Linear
    assert layer.weight.tolist() == layer.weight.T.tolist()
    layer.weight = fb.ones(3, 3)
    assert layer.weight.tolist() == [[1] * 3] * 3
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    copied = copy.deepcopy(layer)
    assert copied.weight.tolist() == layer.weight.tolist()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.tolist() == [[2] * 3] * 3
    with pytest.raises(RuntimeError, match="right_inverse"):
        layer.weight = fb.ones(3, 3)
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is fb.nn.Linear and isinstance(layer.weight, fb.nn.Parameter)
    assert layer.weight.tolist() == [[2] * 3] * 3
    with pytest.raises(ValueError, match="must be parametrized"):
        parametrize.remove_parametrizations(layer, "weight")


def test_a_parametrization_keeps_shape_and_dtype():
    class Flat(fb.nn.Module):
        def forward(self, x):
            return x.flatten()

    with pytest.raises(ValueError, match="shape"):
        fb.nn.utils.parametrize.register_parametrization(fb.nn.Linear(2, 2), "weight", Flat())
    with pytest.raises(ValueError, match="parameter, buffer"):
        fb.nn.utils.parametrize.register_parametrization(fb.nn.Linear(2, 2), "x", Flat())
    layer = fb.nn.Linear(2, 2)
    fb.nn.utils.parametrize.register_parametrization(layer, "weight", Flat(), unsafe=True)
    assert tuple(layer.weight.shape) == (4,)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_functional_call_under_its_older_name():
    net = fb.nn.Linear(2, 2)
    before = net.weight
    given = {"weight": fb.zeros(2, 2), "bias": fb.ones(2)}
    out = fb.nn.utils.stateless.functional_call(net, given, fb.ones(3, 2))
    assert net.weight is before and out.tolist() == [[1, 1]] * 3


def test_sdpa_kernel_is_a_context():
    from flambeau.nn.attention import SDPBackend, allowed_backends, sdpa_kernel

    with sdpa_kernel([SDPBackend.MATH]):
        assert allowed_backends() == (SDPBackend.MATH,)
    assert len(allowed_backends()) > 1
    with pytest.raises(AssertionError), sdpa_kernel("x"):
        pass


def test_data_parallel_is_the_module():
    net = fb.nn.DataParallel(fb.nn.Linear(2, 2))
    assert list(net.state_dict()) == ["module.weight", "module.bias"]
    assert net(fb.ones(1, 2)).tolist() == net.module(fb.ones(1, 2)).tolist()


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrent_nets_differentiate_twice(kind):
    results = []
    for library in LIBRARIES:
        library.manual_seed(0)
        net = getattr(library.nn, kind)(2, 3, num_layers=2, bidirectional=True).double()
        x = library.linspace(-1, 1, 12, dtype=library.float64).reshape(3, 2, 2).requires_grad_()
        inputs = [x, *net.parameters()]
        first = library.autograd.grad(net(x)[0].cos().sum(), inputs, create_graph=True)
        results.append([*first, *library.autograd.grad(sum((g * g).sum() for g in first), inputs)])
    agree(results)
