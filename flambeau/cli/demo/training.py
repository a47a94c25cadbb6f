"""The demo's network and its training, one step at a time, so that it can stop and go on anywhere.

Invariant: what a step does depends only on `state_dict()` and the digits. The order of the images
follows from (seed, epoch); shifts and dropout draw from the global generator, whose state is saved.
So a run that was interrupted after any step ends with the same bits as one that was not.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

_SHIFT = 2


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run is determined by, besides the digits."""

    epochs: int = 15
    batch: int = 64
    peak_rate: float = 8e-3
    seed: int = 0
    held_out: int = 1000


def network() -> nn.Module:
    """(n, 1, 28, 28) grey levels -> (n, 10) logits: two convolutions, two linear layers."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(32 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


class Training:
    """A network that has learnt for `step` steps, and all that the next step needs."""

    def __init__(self, images: Any, labels: Any, settings: Settings):
        self.settings = settings
        self._split(torch.from_numpy(images), torch.from_numpy(labels))
        torch.manual_seed(settings.seed)
        self.model = network()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=settings.peak_rate)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, settings.peak_rate, total_steps=self.total_steps
        )
        self.step = 0
        self.losses: list[float] = []
        self.accuracies: list[tuple[int, float]] = []  # (step, share of the held-out digits)

    def _split(self, images: Any, labels: Any) -> None:
        """Hold some digits out, the same ones for every seed."""
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))
        grey = (images.to(torch.float32) / 255).unsqueeze(1)
        count = self.settings.held_out
        held_out, training = order[:count], order[count:]
        self.held_out = grey[held_out], labels[held_out]
        self.images = F.pad(grey[training], (_SHIFT,) * 4)
        self.labels = labels[training]

    @property
    def steps_per_epoch(self) -> int:
        return math.ceil(len(self.labels) / self.settings.batch)

    @property
    def test_interval(self) -> int:
        """Steps between two looks at the held-out digits: two looks an epoch."""
        return math.ceil(self.steps_per_epoch / 2)

    @property
    def total_steps(self) -> int:
        return self.settings.epochs * self.steps_per_epoch

    @property
    def finished(self) -> bool:
        return self.step >= self.total_steps

    def advance(self) -> int:
        """Train on the next batch; returns how many images that were."""
        images, labels = self._batch()
        self.model.train()
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        self.losses.append(loss.item())
        self.step += 1
        if self.step % self.test_interval == 0 or self.finished:
            self.accuracies.append((self.step, self.accuracy()))
        return len(labels)

    def _batch(self) -> tuple[Any, Any]:
        """The images of this step, each moved by up to two pixels, and their labels."""
        epoch, at = divmod(self.step, self.steps_per_epoch)
        generator = torch.Generator().manual_seed(self.settings.seed + epoch)
        order = torch.randperm(len(self.labels), generator=generator)
        chosen = order[at * self.settings.batch : (at + 1) * self.settings.batch]
        moves = torch.randint(0, 2 * _SHIFT + 1, (2, len(chosen), 1))
        rows, columns = torch.arange(28) + moves
        images = self.images[chosen.view(-1, 1, 1), 0, rows.unsqueeze(2), columns.unsqueeze(1)]
        return images.unsqueeze(1), self.labels[chosen]

    def predictions(self) -> Any:
        """The digit read from each held-out image."""
        self.model.eval()
        with torch.no_grad():
            return self.model(self.held_out[0]).argmax(1)

    def accuracy(self) -> float:
        """The share of the held-out digits that the network reads right."""
        return (self.predictions() == self.held_out[1]).to(torch.float32).mean().item()

    def state_dict(self) -> dict[str, Any]:
        return {
            "settings": asdict(self.settings),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "generator": torch.get_rng_state(),
            "step": self.step,
            "losses": list(self.losses),
            "accuracies": list(self.accuracies),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from `state`, which must come from a run with these settings."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["generator"])
        self.step = state["step"]
        self.losses = list(state["losses"])
        self.accuracies = [(step, share) for step, share in state["accuracies"]]
