"""`torch.backends.quantized`: there are no quantised kernels."""

engine = "none"
supported_engines = ["none"]
