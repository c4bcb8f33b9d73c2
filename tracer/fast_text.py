"""The templates of the functions that `fast.py` writes; see Note [Plain calls] there."""

# Results without history. See Note [Calm] in quiet.py.
EVALUATE = """\
        try:
            if warnings.filters[0] is CALM:
                array = evaluate({operands})
            else:
                array = quietly(evaluate, {operands})
        except Exception:
            return slow({names})
        if array.__class__ is not ndarray:
            array = asarray(array)
        out = new(Tensor)
        out._array = array
        out._storage = out._node = out._grad = out._view = out._leaf = None
        out._nr = 0
        out.dtype = {dtype}
        if not ({needs}):
            out._requires_grad = False
            out._mark = mark
            return out
        if not state.grad_enabled:
            out._requires_grad = False
            out._mark = state.cut
            return out
        if ANOMALY:
            return slow({names})
        out._mark = None
"""

RECORD = """\
        node = new({node})
        node.attrs = NO_ATTRS
        node.plan = plan
        node.edges = edges
        node.sequence = next_sequence()
        node.extra = None
        frame = getframe(1)
        code = frame.f_code
        if code.co_filename in USERS_FILES:
            node.place = (code, frame.f_lasti)
        else:
            node.place = user_place()
        out._requires_grad = True
        out._node = node
"""

EDGE = """\
        if {v}._view is not None:
            e{v} = history({v})
        else:
            e{v} = {v}._node
            e{v} = leaf_edge({v}) if e{v} is None else (e{v}, {v}._nr)
"""

# A tensor may take the short way: nothing to promote, nothing to note, no stale history. Who runs
# ops is asked before: values of a graph that is being built have none of a tensor's fields.
IS_PLAIN = "({v}._requires_grad or {v}._view is None)"

UNARY = """\
def call(x):
    dtype = x.dtype
    if state.top is run and (dtype is float32 or dtype is float64) and (
        (mark := x._mark) != "inference" and {plain_x} and x._array.size < LARGE
    ):
{evaluate}\
        if plan is None:
            return slow(x)
{edge_x}\
        edges = (ex,)
{record}\
        node.uniform = (dtype, array.shape)
        node.types = None
        keys = plan.keys
        if not keys:
            node.saved = ()
        elif hooks.saved or len(keys) > 1:
            save_values(node, plan, (x,), (out,), history)
        elif keys[0] < 0:
            storage = out._storage = new(Storage)
            storage.root = array
            storage.version = 0
            storage.written = None
            entry = new(SavedOutput)
            entry.twin = None
            entry.array = array
            entry.dtype = dtype
            entry.storage = storage
            entry.version = 0
            node.saved = (entry,)
            node.versions = (0,)
        else:
            storage = x._storage
            node.saved = (x,)
            node.versions = (0 if storage is None else storage.version,)
        return out
    return slow(x)
"""

# Ops with attributes, as `alpha`, leave calls that name one to the long way.
HEADS = {
    False: "def call(x, other=NOTHING):\n",
    True: """\
def call(x, other=NOTHING, **attrs):
    if attrs:
        return slow(x, other, **attrs)
""",
}

BINARY = """\
{head}\
    y = other
    dtype = x.dtype
    if (dtype is not float32 and dtype is not float64) or not (
        state.top is run and {plain_x} and x._array.size < LARGE
    ):
        return slow(x, y)
    kind = y.__class__
    mark = x._mark
    if mark == "inference":
        return slow(x, y)
    if kind in PLAIN:
        if y.dtype is not dtype or y._mark == "inference" or not ({plain_y}):
            return slow(x, y)
        mark = mark or y._mark
        a = x._array
        b = y._array
        if b.size >= LARGE:
            return slow(x, y)
{evaluate}\
        if x._requires_grad:
{edge_x_deep}\
            if y._requires_grad:
{edge_y_deeper}\
                edges = (ex, ey)
                plan = plan_both
            else:
                edges = (ex, None)
                plan = plan_left
        else:
{edge_y_deep}\
            edges = (None, ey)
            plan = plan_right
        if plan is None:
            return slow(x, y)
{record}\
        shape = a.shape
        if shape == b.shape:
            node.uniform = (dtype, shape)
            node.types = None
        else:
            node.types = (tensor_types(x, y), (TensorType(dtype, array.shape),))
        keys = plan.keys
        if not keys:
            node.saved = ()
        elif plan.plain and not hooks.saved:
            sx = x._storage
            sy = y._storage
            vx = 0 if sx is None else sx.version
            vy = 0 if sy is None else sy.version
            if len(keys) == 2:
                if keys[0]:  # in the order of their names
                    node.saved = (y, x)
                    node.versions = (vy, vx)
                else:
                    node.saved = (x, y)
                    node.versions = (vx, vy)
            elif keys[0]:
                node.saved = (y,)
                node.versions = (vy,)
            else:
                node.saved = (x,)
                node.versions = (vx,)
        else:
            save_values(node, plan, (x, y), (out,), history)
        return out
    if kind is float or kind is int:
{evaluate_number}\
        plan = plan_left
        if plan is None:
            return slow(x, y)
{edge_x}\
        edges = (ex, None)
{record_number}\
        node.uniform = (dtype, array.shape)
        node.types = None
        keys = plan.keys
        if not keys:
            node.saved = ()
        elif keys == (1,):
            node.saved = (y,)
            node.versions = (0,)
        else:
            save_values(node, plan, (x, y), (out,), history)
        return out
    return slow(x, y)
"""

# In place, untracked: NumPy writes into the tensor's memory.
WRITE = """\
def call(x, y=NOTHING, **attrs):
    dtype = x.dtype
    if (dtype is float32 or dtype is float64) and x._mark != "inference" and x._view is None and (
        not attrs or attrs.keys() == ALPHA
    ) and state.top is run and not readers and not (x._requires_grad and state.grad_enabled):
        kind = y.__class__
        if kind in PLAIN:
            if y.dtype is not dtype or y._mark == "inference" or (
                state.grad_enabled and (y._requires_grad or y._view is not None)
            ) or (y._view is not None and y._storage is x._storage):
                return slow(x, y, **attrs)
            other = y._array
        elif kind is float or kind is int:
            other = y
        else:
            return slow(x, **attrs) if y is NOTHING else slow(x, y, **attrs)
        if attrs:
            alpha = attrs["alpha"]
            if alpha.__class__ is not float and alpha.__class__ is not int:
                return slow(x, y, **attrs)
            other = scaled(other, alpha)
        array = x._array
        if 0 in array.strides:  # detached from an expanded tensor: refused
            return slow(x, y, **attrs)
        try:
            if warnings.filters[0] is CALM:
                evaluate(array, other, array)
            else:
                quietly(evaluate, array, other, array)
        except (FloatingPointError, RuntimeWarning):
            pass  # raised after the write: inf and nan are results like others
        except Exception:
            return slow(x, y, **attrs)
        storage = x._storage
        if storage is None:
            storage = x._storage = Storage(array)
        storage.version += 1
        frame = getframe(1)
        code = frame.f_code
        if code.co_filename in USERS_FILES:
            storage.written = (code, frame.f_lasti)
        else:
            storage.written = user_place()
        return x
    return slow(x, **attrs) if y is NOTHING else slow(x, y, **attrs)
"""
