"""`torch.optim.lr_scheduler`: learning rates that change while training."""

from .base import EPOCH_DEPRECATION_WARNING, LRScheduler, _LRScheduler
from .composite import ChainedScheduler, ReduceLROnPlateau, SequentialLR
from .cyclic import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from .simple import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
