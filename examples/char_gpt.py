"""A very small GPT learns the spelling of a poem, letter by letter, and recites.

The poem is William Blake's "The Tyger" (1794).
"""

import math

import torch
import torch.nn as nn
from torch.nn import functional as F

POEM = """Tyger Tyger, burning bright,
In the forests of the night;
What immortal hand or eye,
Could frame thy fearful symmetry?

In what distant deeps or skies
Burnt the fire of thine eyes?
On what wings dare he aspire?
What the hand, dare seize the fire?
"""
BLOCK, WIDTH, HEADS, LAYERS, STEPS = 32, 48, 4, 2, 300

letters = sorted(set(POEM))
number = {letter: at for at, letter in enumerate(letters)}
text = torch.tensor([number[letter] for letter in POEM])


class Attention(nn.Module):
    """Causal self-attention over HEADS heads."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, HEADS, width // HEADS).transpose(1, 2)
            for part in self.qkv(x).split(width, dim=2)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = nn.Sequential(nn.LayerNorm(WIDTH), Attention())
        self.think = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x):
        x = x + self.attend(x)
        return x + self.think(x)


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.letter = nn.Embedding(len(letters), WIDTH)
        self.place = nn.Embedding(BLOCK, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(letters), bias=False)
        self.head.weight = self.letter.weight

    def forward(self, index):
        x = self.letter(index) + self.place(torch.arange(index.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def batch(size=16):
    starts = torch.randint(len(text) - BLOCK, (size,))
    windows = torch.stack([text[start : start + BLOCK + 1] for start in starts.tolist()])
    return windows[:, :-1], windows[:, 1:]


@torch.no_grad()
def recite(model, start, length):
    index = torch.tensor([[number[letter] for letter in start]])
    for _ in range(length):
        logits = model(index[:, -BLOCK:])[:, -1]
        index = torch.cat([index, logits.argmax(1, keepdim=True)], dim=1)
    return "".join(letters[at] for at in index[0].tolist())


torch.manual_seed(0)
model = GPT()
for parameter in model.parameters():
    if parameter.dim() == 2:
        nn.init.normal_(parameter, std=0.02)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.99))
rate = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda step: min(1.0, step / 20) * (0.5 + 0.5 * math.cos(math.pi * step / STEPS))
)

print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {len(letters)} letters")
for step in range(STEPS):
    index, target = batch()
    loss = F.cross_entropy(model(index).flatten(0, 1), target.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    rate.step()
    if step % 30 == 0:
        print(f"step {step:3d}  loss {loss.item():.3f}  gradient norm {norm.item():.2f}")
print(f"step {STEPS}  loss {loss.item():.3f}")
print(recite(model, "Tyger", 60))
