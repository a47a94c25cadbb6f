"""What `torch.cuda`, `torch.xpu`, `torch.mps`, `torch.cpu` and `torch.accelerator` share."""
