"""`functional_call` and `stack_module_state`: modules as functions of their parameters."""

from ..ir.op import TABLE
from ..tracer.tensor import Tensor


def functional_call(
    module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """Calls `module` with the given tensors in place of its parameters and buffers."""
    given = _merged(parameter_and_buffer_dicts)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    if strict:
        _check_names(module, given)
    if tie_weights:
        given = _with_tied(module, given)
    swapped = []
    try:
        for path, tensor in given.items():
            table, name = _table_of(module, path)
            swapped.append((table, name, table.get(name, _MISSING)))
            table[name] = tensor
        return module(*args, **(kwargs or {}))
    finally:
        for table, name, old in reversed(swapped):
            if old is _MISSING:
                del table[name]
            else:
                table[name] = old


_MISSING = object()


def _merged(given):
    if isinstance(given, dict):
        return given
    if not isinstance(given, tuple | list):
        raise ValueError("Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of "
                         f"dicts, but got {type(given)}")  # fmt: skip
    if not all(isinstance(part, dict) for part in given):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for part in given for name in part]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ValueError(f"{twice} appeared in multiple dictionaries; behavior of functional call "
                         "is ambiguous")  # fmt: skip
    return {name: value for part in given for name, value in part.items()}


def _table_of(module, path):
    """The table of the submodule that holds a parameter or buffer, and its name there."""
    *owners, name = path.split(".")
    for owner in owners:
        module = getattr(module, owner)
    table = module._buffers if name in module._buffers else module._parameters
    return table, name


def _all_tensors(module):
    """Every name of every parameter and buffer, shared ones under each of their names."""
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _check_names(module, given):
    have = {name for name, _ in _all_tensors(module)}
    missing, unexpected = sorted(have - set(given)), sorted(set(given) - have)
    if missing or unexpected:
        texts = [
            f"Missing key(s): {', '.join(map(repr, missing))}." if missing else "",
            f"Unexpected key(s): {', '.join(map(repr, unexpected))}." if unexpected else "",
        ]
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t"
                           + "\n\t".join(t for t in texts if t))  # fmt: skip


def _with_tied(module, given):
    """Tensors the module knows by several names are replaced under all of them."""
    groups = {}
    for name, tensor in _all_tensors(module):
        groups.setdefault(id(tensor), []).append(name)
    full = dict(given)
    for names in groups.values():
        present = [name for name in names if name in given]
        if not present:
            continue
        if any(given[name] is not given[present[0]] for name in present):
            raise ValueError(f"functional_call got multiple values for keys {sorted(present)}, "
                             "which are tied. Consider using tie_weights=False")  # fmt: skip
        full.update(dict.fromkeys(names, given[present[0]]))
    return full


def stack_module_state(models):
    """(parameters, buffers) of several models of one architecture, stacked along a new dim 0."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same "
                           "training/eval mode.")  # fmt: skip
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = {
        name: _stacked([dict(m.named_parameters())[name] for m in models])
        for name, _ in models[0].named_parameters()
    }
    buffers = {
        name: _stacked([dict(m.named_buffers())[name] for m in models])
        for name, _ in models[0].named_buffers()
    }
    return parameters, buffers


def _stacked(tensors):
    flags = [t.requires_grad for t in tensors]
    if len(set(flags)) > 1:
        raise RuntimeError("Expected either all tensors to require grad or none of them to, "
                           f"but got {flags}")  # fmt: skip
    stacked: Tensor = TABLE["stack"](*[t.detach() for t in tensors], dim=0)
    return stacked.requires_grad_(flags[0]) if flags[0] else stacked


def replace_all_batch_norm_modules_(root):
    """replace_all_batch_norm_modules_(root): batch norms inside keep no running statistics."""
    from ..nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d

    for module in root.modules():
        if isinstance(module, BatchNorm1d | BatchNorm2d | BatchNorm3d):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
