"""`torch.backends`: what other libraries torch could use; here none."""

from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp
