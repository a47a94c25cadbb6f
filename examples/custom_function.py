"""Gradients of one's own: a rounding that lets the gradient through, and a checked swish.

The first learns weights on a grid (the "straight-through" trick of quantised networks); the second
saves what its gradient needs and is tested against finite differences.
"""

import torch
from torch.autograd import Function, gradcheck, gradgradcheck


class RoundThrough(Function):
    """Rounds to steps of `width`; its gradient is that of the identity inside [-1, 1]."""

    @staticmethod
    def forward(ctx, x, width):
        ctx.save_for_backward(x)
        return torch.round(x / width) * width

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1), None


class Swish(Function):
    """x sigmoid(x)."""

    @staticmethod
    def forward(ctx, x):
        gate = torch.sigmoid(x)
        ctx.save_for_backward(x)
        return x * gate

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        gate = torch.sigmoid(x)
        return grad * gate * (1 + x * (1 - gate))


torch.manual_seed(0)
x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
print("swish: gradient right:", gradcheck(Swish.apply, (x,)))
print("swish: second gradient right:", gradgradcheck(Swish.apply, (x,)))

torch.manual_seed(1)
inputs = torch.randn(256, 3)
wanted = torch.tensor([0.75, -0.5, 0.25])
targets = inputs @ wanted
weights = torch.zeros(3, requires_grad=True)
optimizer = torch.optim.SGD([weights], lr=0.1, momentum=0.5)
for step in range(40):
    optimizer.zero_grad()
    loss = ((inputs @ RoundThrough.apply(weights, 0.25) - targets) ** 2).mean()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"step {step:2d}  loss {loss.item():.4f}")
print("weights on the grid:", RoundThrough.apply(weights, 0.25).detach())
