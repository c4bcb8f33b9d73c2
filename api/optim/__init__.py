"""`torch.optim`: optimizers, learning rate schedules, averages of models."""

from ..naming import found_in as _found_in
from . import lr_scheduler, swa_utils
from .adadelta import Adadelta
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adam import Adam, AdamW
from .adamax import Adamax
from .asgd import ASGD
from .lbfgs import LBFGS
from .muon import Muon
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

_found_in(f"{__name__}.adamw", AdamW)
_found_in(__name__, Adafactor, Muon)
