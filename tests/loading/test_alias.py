"""as_torch, and the answers for devices that are absent."""

import subprocess
import sys

import pytest
import wengert as torch


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def test_code_that_imports_torch_gets_this_package():
    done = run("""
import sys, wengert
with wengert.as_torch():
    import torch
    import torch.nn.functional as F
    from torch.nn.modules.linear import Linear
    from torch.optim.lr_scheduler import StepLR
    assert torch is wengert and Linear is wengert.nn.Linear and F is wengert.nn.functional
    assert F.__name__ == F.__spec__.name == "wengert.nn.functional"
    try:
        import torch.missing
    except ModuleNotFoundError as error:
        print(error)
assert not [name for name in sys.modules if name.startswith("torch")]
""")
    assert done.stdout == "No module named 'torch.missing'\n"


def test_real_torch_is_not_replaced():
    done = run("""
import sys, types, wengert
sys.modules["torch"] = types.ModuleType("torch")
try:
    wengert.as_torch()
except RuntimeError as error:
    print(error)
""")
    assert done.stdout.startswith("torch is already imported in this process")


def test_importing_the_package_imports_no_more_than_needed():
    """What `site` imports for an editable install is not counted."""
    done = run("""
import sys
before = set(sys.modules)
import wengert
heavy = {"wengert.nn", "wengert.optim", "multiprocessing", "llvmlite", "jinja2", "zipfile"}
print(sorted(heavy & (set(sys.modules) - before)))
""")
    assert done.stdout == "[]\n"


def test_what_scripts_say_to_torchs_compiler():
    done = run("""
import wengert
wengert.as_torch()
import torch
import torch._dynamo
from torch.types import Device, Number
torch._dynamo.config.suppress_errors = True
torch._dynamo.config.cache_size_limit = 64
torch._inductor.config.triton.unique_kernel_names = True
torch._inductor.config.coordinate_descent_tuning = True
torch._dynamo.reset()

@torch._dynamo.disable
def outside(x: torch.Tensor, by: Number, where: Device = None):
    return x * by

x = torch.ones(2)
torch._dynamo.mark_dynamic(x, 0)
print(torch.compile(lambda x: outside(x, 2) + 1)(x))
state = {"_orig_mod.weight": torch.ones(1, 2), "_orig_mod.bias": torch.zeros(1)}
compiled = torch.compile(torch.nn.Linear(2, 1))
print(compiled.load_state_dict(state), compiled.weight.tolist(), sorted(state))
torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "_orig_mod.")
print(compiled._orig_mod.load_state_dict(state), isinstance(2.5, Number))
""")
    assert done.stdout == (
        "tensor([3., 3.])\n<All keys matched successfully> [[1.0, 1.0]] "
        "['_orig_mod.bias', '_orig_mod.weight']\n<All keys matched successfully> True\n"
    )


def test_absent_devices_say_so():
    assert not torch.cuda.is_available() and torch.cuda.device_count() == 0
    assert not torch.accelerator.is_available() and torch.accelerator.current_accelerator() is None
    assert not torch.backends.mps.is_available() and not torch.ones(1).is_cuda
    torch.cuda.manual_seed_all(0)
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.cuda.synchronize()
    with pytest.raises(TypeError, match="FloatTensor not available"):
        torch.cuda.FloatTensor([1.0])


def test_autocast_runs_products_in_bfloat16_on_the_cpu():
    a = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        product = a @ a
        assert product.dtype is torch.bfloat16 and (a + a).dtype is torch.float32
    product.sum().backward()
    assert a.grad.dtype is torch.float32 and a.grad.tolist() == [[4, 4], [4, 4]]
    with (
        pytest.warns(UserWarning, match="CUDA is not available"),
        torch.autocast("cuda"),
    ):
        assert (a @ a).dtype is torch.float32


def test_grad_scaler_skips_infinite_steps():
    p = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([p], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for loss, value, scale in ((p.sum(), 0.0, 4.0), (p.sum() * float("inf"), 0.0, 2.0)):
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        assert p.item() == value and scaler.get_scale() == scale


def test_limits_of_dtypes():
    assert str(torch.finfo(torch.float16)) == (
        "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, "
        "smallest_normal=6.10352e-05, tiny=6.10352e-05, dtype=float16)"
    )
    assert torch.iinfo(torch.int8).min == -128 and torch.finfo(torch.bfloat16).eps == 2**-7
    with pytest.raises(TypeError, match="requires a floating point input type"):
        torch.finfo(torch.int32)
