"""`torch._dynamo.config`: torch's options of compilation.

`disable` runs compiled functions eagerly, `error_on_recompile` raises where a function that has a
trace would record another. The others are kept and change nothing: results never depend on them,
and what they tune (how guards are made, what breaks a graph) does not exist here.
"""

from .. import option_module as _option_module
from .. import stances as _stances

_OPTIONS = {
    "accumulated_recompile_limit": 256, "allow_rnn": False, "allow_unspec_int_on_nn_module": False,
    "assume_static_by_default": True, "automatic_dynamic_shapes": True, "base_dir": "",
    "capture_dynamic_output_shape_ops": False, "capture_scalar_outputs": False,
    "compiled_autograd": False, "debug_dir_root": "", "disable": False, "dynamic_shapes": True,
    "error_on_recompile": False, "fail_on_recompile_limit_hit": False,
    "force_parameter_static_shapes": True, "guard_nn_modules": True,
    "inline_inbuilt_nn_modules": True, "log_file_name": None, "minimum_call_count": 1,
    "optimize_ddp": True, "recompile_limit": 8, "replay_record_enabled": False,
    "report_guard_failures": True, "repro_after": None, "repro_level": 2, "specialize_float": False,
    "specialize_int": False, "suppress_errors": False, "trace_numpy": True, "verbose": False,
    "verify_correctness": False,
}  # fmt: skip

_option_module.install(
    __name__,
    _OPTIONS,
    {"cache_size_limit": "recompile_limit",
     "accumulated_cache_size_limit": "accumulated_recompile_limit"},
    {"disable": lambda value: _stances.follow(disabled=bool(value)),
     "error_on_recompile": lambda value: _stances.follow(fixed=bool(value))},
)  # fmt: skip
