"""`nn.utils.stateless.functional_call`, which torch moved to `torch.func`."""

from ...func import functional_call

__all__ = ["functional_call"]
