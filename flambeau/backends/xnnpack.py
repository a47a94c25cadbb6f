"""`torch.backends.xnnpack`: there is no XNNPACK."""

enabled = False
