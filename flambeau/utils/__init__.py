"""PyTorch's `torch.utils`: places for public names whose code lives in other packages."""
