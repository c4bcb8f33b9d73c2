"""Errors for those who build on the library: new ops, graphs by hand, kernels, other machines."""

import pickle

import numpy as np
import pytest
import wengert as torch
from wengert import archive, exported, serialization
from wengert.cli import bench
from wengert.codegen import gemm, gemm_fold
from wengert.codegen.epilogue import Epilogue
from wengert.codegen.llvm import Emitter
from wengert.ir import formulas, op, printer, value
from wengert.ir.builder import Builder
from wengert.ir.ops import drawing, linalg_eigen
from wengert.ir.passes import decompose
from wengert.ir.scalar_python import PythonReader
from wengert.runtime import export
from wengert.tracer import rounding
from wengert.utils import data


@pytest.fixture
def new_op(monkeypatch):
    """new_op(numpy, **facts): an op that is forgotten after the test."""
    monkeypatch.setattr(op, "TABLE", dict(op.TABLE))
    return lambda numpy=np.abs, **facts: op.define("own", "self -> result", numpy=numpy, **facts)


def test_ops_are_defined_once_with_rules_for_what_they_have(new_op):
    with pytest.raises(ValueError, match="op relu is defined twice"):
        op.define("relu", "self -> result", numpy=np.abs)
    with pytest.raises(ValueError, match="rule for unknown input 'other'; inputs"):
        new_op(vjp={"other": lambda grad: grad})
    with pytest.raises(ValueError, match="a rule may not name 'slope'; legal names: self"):
        new_op(vjp={"self": lambda grad, slope: grad})
    with pytest.raises(ValueError, match=r"public function relu is registered twice"):
        value.public("relu")(value.FUNCTIONS["relu"].call)


def test_ops_give_what_torch_has(new_op):
    with pytest.raises(TypeError, match="an op returned an array of datetime64"):
        new_op(lambda x: np.zeros(2, "M8[s]"), infer=lambda self: self)(torch.ones(2))


def test_decompositions_end(new_op):
    endless = new_op()
    endless.lower = op.Decompose(lambda x: endless(x))
    graph = torch.ir.trace(endless)(torch.ones(2))
    with pytest.raises(RuntimeError, match="decompositions do not end: own"):
        decompose.run(graph)


def test_values_of_a_graph_are_no_python_values():
    def answer(x):
        return x if bool(x) else x * 2

    builder = Builder("own")
    with pytest.raises(TypeError, match="a value in IR has no truth: rules may not branch"):
        answer(builder.input("x", torch.ones(2).type_))
    with pytest.raises(TypeError, match="add: str can't be an operand in IR"):
        builder.lift_one(op.TABLE["add"], "text", ())
    with pytest.raises(TypeError, match="has no text form"):
        printer.print_value(object())


def test_derivatives_written_by_hand_fit_the_call():
    one, type_ = torch.ir.trace(lambda x: x * 2)(torch.ones(2)), torch.ones(2).type_
    call = op.TABLE["call"]
    with pytest.raises(TypeError, match="backward takes 1 inputs, which are not what it reads"):
        call.infer_types([type_, type_, type_], {"backward": one, "count": 1, "outputs": 1})
    other = torch.ones(3).type_
    with pytest.raises(TypeError, match="backward does not give the gradients of the inputs"):
        call.infer_types([other, type_], {"backward": one, "count": 1, "outputs": 1})


def typed(name, *shapes, **attrs):
    return op.TABLE[name].infer_types([torch.ones(shape).type_ for shape in shapes], attrs)


def test_windows_written_by_hand_lie_in_the_input():
    how = {"stride": (1,), "padding": (0,), "dilation": (1,)}
    with pytest.raises(RuntimeError, match=r"windows of size 4 with stride 1, .* do not fit"):
        typed("convolution", (1, 2, 3), (1, 2, 4), **how)
    with pytest.raises(RuntimeError, match="of 2 groups are not for"):
        typed("convolution", (1, 2, 3), (1, 2, 2), groups=2, **how)
    with pytest.raises(RuntimeError, match=r"avg_spread: averages of size \(3,\) are"):
        typed("avg_spread", (1, 2, 3), size=(3,), kernel=(2,), stride=(1,), padding=(0,),
              ceil_mode=False, count_include_pad=True, divisor_override=None)  # fmt: skip


def test_formulas_are_arithmetic_of_sizes():
    with pytest.raises(ValueError, match=r"'f\(n\)' is no formula of sizes"):
        formulas.parse_formula("f(n)")


def test_random_results_without_a_derivative_say_so():
    with pytest.raises(NotImplementedError, match="the derivative for this random function"):
        drawing._no_slope(None, (), 0, "NotImplemented")


def test_eigenvalues_that_do_not_converge():
    def fail(*args):
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    with pytest.raises(torch.linalg.LinAlgError, match="The algorithm failed to converge"):
        linalg_eigen.converging(fail, np.eye(2), "L")


def test_dtypes_have_known_names():
    with pytest.raises(TypeError, match="no dtype is named 'float7'; known are"):
        rounding.dtype_name("float7")


def test_scalars_are_cast_before_float_functions():
    reader = PythonReader()
    with pytest.raises(TypeError, match="a float function got int64; cast first"):
        reader.sqrt(reader.const(1, "int64"))


# --- kernels -------------------------------------------------------------------------------------


def product(**changed):
    return gemm.Matmul(**{"name": "p", "dtype": "float32", "m": 8, "n": 8, "k": 8, "a": (8, 1),
                          "b": (8, 1), "c": (8, 1), **changed})  # fmt: skip


def test_kernels_have_strides_that_they_can_read():
    with pytest.raises(ValueError, match="p: a dot kernel cannot have these strides"):
        gemm.emit(product(), kind=gemm.Dot)
    with pytest.raises(ValueError, match="a side of a product has more than"):
        gemm_fold.fields("a", ((2, 1),) * (gemm_fold.DIGITS + 1))


@pytest.mark.parametrize("kind", [gemm.Direct, gemm.Packed])
def test_epilogues_give_what_c_holds(kind):
    wide = Epilogue((), lambda site: site.s.cast(site.value, "float64"))
    with pytest.raises(TypeError, match=r"epilogue of p.* gives float64, C holds float32"):
        str(gemm.emit(product(epilogue=wide), kind=kind).text)


def test_instructions_take_values_of_their_type():
    emitter = Emitter()
    with pytest.raises(TypeError, match="expected double, got"):
        emitter.wrap(emitter.argument("%x", "float"), "double")


# --- files and machines --------------------------------------------------------------------------


def test_code_for_another_processor_is_not_loaded(monkeypatch):
    monkeypatch.setattr(exported, "WATCHED", ("imagined",))
    manifest = {"triple": "x86_64-linux", "features": "imagined"}
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    with pytest.raises(RuntimeError, match="exported for a CPU with imagined, which is missing"):
        exported.check_machine(manifest)


def test_libraries_need_a_compiler_where_there_is_no_linker(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "other")
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(export.ExportError, match="a shared library needs `cc` on this machine"):
        export.shared_library({}, [], "none")


def test_interpreted_functions_have_no_code_to_export(monkeypatch, tmp_path):
    monkeypatch.setenv("WENGERT_BACKEND", "interpreter")
    function = torch.compile(lambda x: x * 2)
    for _ in range(2):
        function(torch.ones(2))
    with pytest.raises(export.ExportError, match="runs in the interpreter: there is no native"):
        function.export(tmp_path)


def test_exports_have_their_weights(tmp_path):
    weight = torch.ones(2)
    function = torch.compile(lambda x: x * weight)
    for _ in range(2):
        function(torch.ones(2))
    function.export(tmp_path)
    model = torch.load_exported(tmp_path)
    model.weights.clear()
    with pytest.raises(TypeError, match="has no value: it was not there at export"):
        model(torch.ones(2))


def test_tensors_of_files_fit_their_storages():
    with pytest.raises(RuntimeError, match="can't be made"):
        archive.tensor_of(np.zeros(1, "f4"), torch.float32, 0, (0, 2**62, 2**62), (1, 1, 1))
    rebuild = serialization._rebuild_tensor_v3
    with pytest.raises(pickle.UnpicklingError, match="a tensor in the file has no storage"):
        rebuild(1, 0, (), (), False, None, torch.float32)
    bytes_ = serialization.Loaded(np.zeros(3, np.uint8), torch.uint8)
    with pytest.raises(pickle.UnpicklingError, match="a storage is no whole number of float32"):
        rebuild(bytes_, 0, (), (), False, None, torch.float32)


def test_benchmarks_may_be_missing(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="the benchmarks are not installed"):
        bench.run(None)


def test_native_calls_are_declined_for_a_reason():
    function = torch.compile(lambda x: x.sin() * 2)
    for _ in range(3):
        function(torch.ones(2))
    (segment,) = function.latest().segments()
    native = segment.function.plain().native.runnable
    with pytest.raises(RuntimeError, match="arguments fit but were declined"):
        native.slow(np.ones(2, np.float32))


def test_streams_end():
    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(3))

    assert len(list(data.DataLoader(Stream(), batch_size=2, drop_last=True))) == 1
