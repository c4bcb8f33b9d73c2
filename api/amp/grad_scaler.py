"""`torch.amp.grad_scaler`: where GradScaler is defined in torch."""

from . import GradScaler

__all__ = ["GradScaler"]
