"""`torch.utils.deterministic`: `empty` is filled here in any case."""

fill_uninitialized_memory = True
