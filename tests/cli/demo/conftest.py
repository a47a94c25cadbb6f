import numpy as np
import pytest


@pytest.fixture(scope="session")
def blots():
    """260 images of ten kinds: kind k has its blot in row 2 k, among noise."""
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 10, 260)
    images = generator.integers(0, 60, (260, 28, 28)).astype(np.uint8)
    for image, label in zip(images, labels):
        image[2 * label + 3 : 2 * label + 6, 10:18] = 250
    return images, labels
