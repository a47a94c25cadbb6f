"""Which module of flambeau answers to which module name of PyTorch.

A name is looked up as it is (`torch.nn` is `flambeau.nn`); the table here is for module names that
PyTorch spreads over many files while flambeau keeps their contents in the package above.
"""

_NN_FILES = """activation adaptive batchnorm channelshuffle container conv distance dropout flatten
    fold instancenorm lazy linear loss module normalization padding pixelshuffle pooling rnn sparse
    transformer upsampling utils""".split()
_OPTIMIZER_FILES = """adadelta adagrad adam adamax adamw asgd lbfgs nadam optimizer radam rmsprop
    rprop sgd sparse_adam""".split()
_DATA_FILES = "dataloader dataset sampler".split()

_MOVED = {
    "torch.functional": "torch",
    "torch._tensor": "torch",
    "torch.nn.parameter": "torch.nn",
    "torch.nn.modules": "torch.nn",
    "torch.cpu.amp": "torch.amp",
    "torch.nn.parallel.distributed": "torch.nn.parallel",
    "torch.autograd.function": "torch.autograd",
    "torch.autograd.variable": "torch.autograd",
    "torch.utils.data._utils.collate": "torch.utils.data",
    **{f"torch.nn.modules.{name}": "torch.nn" for name in _NN_FILES},
    **{f"torch.optim.{name}": "torch.optim" for name in _OPTIMIZER_FILES},
    **{f"torch.utils.data.{name}": "torch.utils.data" for name in _DATA_FILES},
}


def ours(name: str) -> str:
    """The flambeau module that has the same place: `torch.nn` -> `flambeau.nn`."""
    return "flambeau" + name.removeprefix("torch")


def moved(name: str) -> str | None:
    """The flambeau module that holds what PyTorch keeps in `name`, where the places differ."""
    target = _MOVED.get(name)
    return ours(target) if target else None
