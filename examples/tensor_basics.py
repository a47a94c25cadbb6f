"""A tour of tensors: making and cutting them, arithmetic, and gradients through plain Python."""

import torch

torch.manual_seed(0)

# Making tensors
numbers = torch.tensor([[1, 2, 3], [4, 5, 6]])
print("from lists:", numbers, numbers.dtype, numbers.shape)
print("random:", torch.rand(2, 3))
print("zeros:", torch.zeros(2, 2))
copy = numbers.clone()
copy[0, 0] = 100
print("a clone is a copy of its own:", numbers[0, 0].item(), copy[0, 0].item())

# Indexing and slicing
table = torch.arange(12).reshape(3, 4)
print("a row:", table[1])
print("a column:", table[:, 2])
print("every second column, last two rows:", table[-2:, ::2])
print("what is above 5:", table[table > 5])
table[0] = -1
print("after writing a row:", table)

# Arithmetic
a = torch.tensor([1.0, 2.0, 3.0])
b = torch.tensor([10.0, 20.0, 30.0])
print("sum:", a + b)
print("times a number:", a * 2.5)
print("product, by element and as vectors:", a * b, a @ b)

# Shapes that differ are broadcast
column = torch.tensor([[0.0], [100.0]])
print("(2, 1) + (3,):", column + a)
print("shape of (4, 1, 3) * (2, 1):", (torch.ones(4, 1, 3) * torch.ones(2, 1)).shape)
try:
    torch.ones(2, 3) + torch.ones(2, 2)
except RuntimeError as error:
    print("these do not fit:", isinstance(error, RuntimeError))


# The graph is whatever Python did
def winding(x, turns):
    y = x
    for turn in range(turns):
        if y.sum() > 0:
            y = y * x
        else:
            y = y - turn
    return y.sum()


for turns in (1, 3):
    x = torch.tensor([0.5, -1.5, 2.0], requires_grad=True)
    result = winding(x, turns)
    result.backward()
    print(f"{turns} turns: value {result.item():.4f}, gradient {x.grad}")

# Gradients of gradients
x = torch.tensor(3.0, requires_grad=True)
(first,) = torch.autograd.grad(x**4, x, create_graph=True)
(second,) = torch.autograd.grad(first, x)
print("d x^4 / dx and the second derivative at 3:", first.item(), second.item())

with torch.no_grad():
    print("no graph is kept here:", (x * 2).requires_grad)
