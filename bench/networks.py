"""Networks for measurements of whole training steps, written once for both frameworks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def small(torch: Any) -> tuple[Any, Any, Any]:
    """784-256-10 with ReLU and a batch of 64."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    return model, torch.randn(64, 784), torch.randint(0, 10, (64,))


def block(torch: Any) -> type:
    """ResNet's basic block (He et al. 2015)."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inward: int, outward: int, stride: int):
            super().__init__()
            self.first = nn.Conv2d(inward, outward, 3, stride, 1, bias=False)
            self.second = nn.Conv2d(outward, outward, 3, 1, 1, bias=False)
            self.norms = nn.ModuleList([nn.BatchNorm2d(outward) for _ in range(2)])
            self.short = nn.Identity()
            if stride != 1 or inward != outward:
                self.short = nn.Sequential(
                    nn.Conv2d(inward, outward, 1, stride, bias=False), nn.BatchNorm2d(outward)
                )

        def forward(self, x):
            y = torch.relu(self.norms[0](self.first(x)))
            return torch.relu(self.norms[1](self.second(y)) + self.short(x))

    return Block


def resnet18(torch: Any) -> tuple[Any, Any, Any]:
    """ResNet-18 with a batch of 8 images of 224 x 224."""
    nn, made = torch.nn, block(torch)
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
              nn.MaxPool2d(3, 2, 1)]
    inward = 64
    for outward, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [made(inward, outward, stride), made(outward, outward, 1)]
        inward = outward
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)]
    return nn.Sequential(*layers), torch.randn(8, 3, 224, 224), torch.randint(0, 1000, (8,))


def convolutional(torch: Any) -> tuple[Any, Any, Any]:
    """Two convolutions and two linear layers for 28 x 28 images, a batch of 64."""
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Dropout(0.25), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(128, 10),
    )
    return model, torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))


def transformer(torch: Any) -> tuple[Any, Any, Any]:
    """Four causal layers of width 256 with 4 heads, 16 sequences of 128 tokens."""
    nn = torch.nn

    class Layer(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                      nn.Linear(4 * width, width))

        def forward(self, x):
            n, t, c = x.shape
            heads = [h.view(n, t, 4, c // 4).transpose(1, 2)
                     for h in self.qkv(self.before(x)).split(c, 2)]
            y = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(n, t, c))
            return x + self.wide(self.after(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(65, 256), nn.Embedding(128, 256)
            self.layers = nn.Sequential(*[Layer(256) for _ in range(4)])
            self.norm, self.head = nn.LayerNorm(256), nn.Linear(256, 65)

        def forward(self, x):
            x = self.tokens(x) + self.places(torch.arange(x.shape[1]))
            return self.head(self.norm(self.layers(x))).flatten(0, 1)

    return Model(), torch.randint(0, 65, (16, 128)), torch.randint(0, 65, (16 * 128,))


NETWORKS: dict[str, Callable[[Any], tuple[Any, Any, Any]]] = {
    "small": small, "cnn": convolutional, "gpt": transformer, "resnet18": resnet18,
}


def training_step(torch: Any, name: str) -> Callable[[], Any]:
    """One step of SGD on a batch that stays."""
    torch.manual_seed(0)
    model, x, y = NETWORKS[name](torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss = torch.nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        found = loss(model(x), y)
        found.backward()
        optimizer.step()
        return found

    return step
