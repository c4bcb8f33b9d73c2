"""Codes of warnings, refusals and errors: what each means and what to do.

A code is found by words of its message, so messages stay where they are raised; a test looks for
every `words` in the sources. docs/errors.md is made of this table.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """`words` occur in the message; `meaning` and `remedy` are for people."""

    code: str
    words: str
    meaning: str
    remedy: str
    example: str = ""


CODES = (
    Code("W001", "wengert could not compile",
         "The compiler itself failed on this function. It runs eagerly, so results are right.",
         "`python -m wengert bug SCRIPT` packs a report; fn.report('out.html') opens at the pass "
         "that failed; WENGERT_STRICT=1 raises the error itself."),
    Code("W002", "run in the reference interpreter",
         "llvmlite is missing or does not work here, so nothing becomes native code. Results are "
         "the same, at eager speed.",
         "Install llvmlite (`pip install llvmlite`); `python -m wengert doctor` says what is "
         "wrong."),
    Code("R101", "hands a value to Python",
         "The body looks at a value, so Python must run at every call.",
         "Return the tensor and read it outside, or compare tensors with where().",
         "loss.item() inside a compiled step"),
    Code("R102", "is kept in Python state by the body",
         "A tensor the body computed outlives it, in a list, an attribute or a closure. The first "
         "calls are taken for warm-up; optimizers make their state then.",
         "Return the tensor instead of keeping it.", "self.history.append(loss)"),
    Code("R103", "the body changes Python state while it runs",
         "Replaying native code would not make the change.",
         "Keep the state in a tensor (a buffer), or change it outside.", "self.steps += 1"),
    Code("R104", "a hook or retain_grad() on a value inside the function",
         "The hook would have to run in Python at every backward.",
         "Put hooks on parameters or inputs, or leave this function uncompiled."),
    Code("R105", "requires_grad of a tensor from outside changes",
         "What needs a gradient is part of what was compiled, where results have history.",
         "Set requires_grad before the call, or return results without history."),
    Code("R106", "takes part in autograd; write under",
         "A write into a tensor from outside has a gradient that must flow to later calls.",
         "Write under no_grad(), or return the new value."),
    Code("R107", "two tensors from outside share memory",
         "Writes through one would be seen through the other in a way that is not known.",
         "Pass one of them and make the view inside, or clone() it."),
    Code("R108", "result depends on values",
         "Native code is made for fixed shapes; this op's shape is known only after it ran.",
         "Use a mask and where(), or run this part outside.", "x[x > 0], nonzero()"),
    Code("R109", "value is used by Python; later calls",
         "A float argument is read by Python (math.sqrt(lr)); calls specialise on its value.",
         "Nothing, or pass a tensor and use tensor functions."),
    Code("R110", "traces for one kind of call",
         "Guards failed so often that a new trace each time does not pay.",
         "Look at fn.explain(): a value in a closure or global changes at every call; pass it."),
    Code("R111", "random numbers were drawn outside the recorded ops",
         "The draw would not be made again by native code.",
         "Draw with the library's random functions inside, or pass the numbers."),
    Code("R113", "a NumPy array is turned into a tensor inside the function",
         "The array may be another one at the next call.",
         "Make the tensor outside and pass it."),
    Code("R114", "a write changed the type of a tensor",
         "A tensor's memory got a value of another shape or dtype.",
         "Make a new tensor instead."),
    Code("R115", "the body prints",
         "Native code would print nothing.", "Print outside of the function."),
    Code("R116", "random numbers of Python's or NumPy's",
         "A draw decides what is computed, and must be made at every call.",
         "Draw with the library's random functions; they are part of what is compiled.",
         "if random.random() < 0.5:"),
    Code("R117", "the body asks for the time",
         "The clock shows another time at every call.", "Take times outside of the function."),
    Code("R118", "the body uses open() or input()",
         "Files are read and written at every call.", "Do so outside of the function."),
    Code("R119", "the body changes a container it was given",
         "Replaying native code would not make the change.", "Return a new list or dict.",
         'batch["loss"] = loss'),
    Code("R120", "a loop or branches on values",
         "The tree of compiled segments would grow without end; the body runs, in segments.",
         "Nothing, or choose with where() instead of if."),
    Code("R121", "`.data` of a tensor is replaced",
         "The tensor gets other memory at every call, which views of it do not see.",
         "Write into its memory: t.copy_(value) under no_grad()."),
    Code("R122", "whether a number is another",
         "Equal floats may be different objects, and `is` tells.", "Compare with ==."),
    Code("R123", "attributes that users put on tensors",
         "The next tensor may have others, or none.", "Pass the values as arguments."),
    Code("R124", "saved_tensors_hooks are around it",
         "Hooks see each value that eager saves; for this function the graph does not tell which "
         "they are, so the body runs.",
         "Nothing, or take what branches or a custom Function out of the hooked part."),
    Code("R125", "saved_tensors_hooks inside the function",
         "The hooks would have to run in Python at every call and every backward.",
         "Put them around the compiled function."),
    Code("R126", "a checkpoint writes or draws",
         "Backward runs the checkpointed part again, and its writes and draws too.",
         "Keep batch norms out of it, and leave preserve_rng_state as it is."),
    Code("R127", "leads to a leaf that the body made",
         "A result carries history that ends in such a leaf alone, or the leaf is returned, too: "
         "its gradient would be seen.",
         "Call backward() or grad() in the body, or pass the leaf."),
    Code("R128", "from an op without a derivative",
         "Backward from that result would raise, so none can be made ahead.",
         "detach() what such ops compute, or call them under no_grad().", "floor_divide(x, 2)"),
    Code("R129", "is disabled for compilation",
         "The body calls a function under torch.compiler.disable, which runs in Python at every "
         "call; what is before and after it is compiled.",
         "Nothing, or remove disable()."),
    Code("R130", "graph_break() is called",
         "The body asks to be compiled in parts, so Python runs at every call.",
         "Remove torch._dynamo.graph_break()."),
    Code("R131", "custom op",
         "An op of torch.library is Python code that nobody may look into; it runs at every call.",
         "Nothing, or call the function itself, without custom_op."),
    Code("R132", "shows elements several times and is written",
         "An expanded tensor from outside is one element in many places; a write back to all of "
         "them would be done in no order.",
         "clone() it before the write, or write to what it was expanded from."),
    Code("R133", "has sparse gradients",
         "Compiled code computes with dense gradients only, so the body runs.",
         "Leave out sparse=True, and use Adam in the place of SparseAdam."),
    Code("R134", "goes through what was computed outside",
         "Backward inside the function reaches ops that ran before it was called, other ones at "
         "each call.",
         "Compute the loss inside, or call backward() outside.",
         "loss.backward() of an argument"),
    Code("R135", "functions of packages",
         "The body calls something of a large package; looking through all of its code for what "
         "may differ at the next call would take seconds.",
         "Call it outside, or compile the functions that compute.", "plt.plot(x) in a step"),
    Code("E201", "modified by an inplace",
         "Backward needs a value that was overwritten after it was saved.",
         "clone() the value before changing it; the message names both lines."),
    Code("E202", "backward through the graph a second time",
         "The graph was freed by the first backward.",
         "retain_graph=True in the first one, or compute the result again."),
    Code("E203", "does not require grad and does not have a grad_fn",
         "No leaf that requires grad led to this tensor.",
         "Set requires_grad on a leaf; look for detach(), no_grad() or integer dtypes on the way."),
    Code("E204", "grad can be implicitly created only for",
         "backward() without an argument starts from one number.",
         "Reduce with sum() or mean(), or pass a gradient."),
    Code("E301", "cannot be exported: it branches on values",
         "A library holds one straight program; this function chooses its path in Python.",
         "Use where() for both outcomes, or export the parts."),
    Code("E302", "would run in Python, as",
         "An op has no native kernel; `python -m wengert coverage` lists those.",
         "Compute that part outside of the exported function."),
    Code("E303", "exported for a CPU with",
         "The library uses instructions this CPU lacks.", "Export it on this machine."),
)  # fmt: skip


def code_of(message: str) -> Code | None:
    """The code of a message, by its words."""
    plain = " ".join(message.split())
    return next((code for code in CODES if code.words in plain), None)


def find(query: str) -> Code | None:
    """By code, or by a message that was shown."""
    wanted = query.strip().strip("[]").upper()
    return next((c for c in CODES if c.code == wanted), None) or code_of(query)


def text_of(code: Code) -> str:
    """What `wengert explain` prints."""
    lines = [f"{code.code}: ... {code.words} ...", "", f"  {code.meaning}",
             f"  What to do: {code.remedy}"]  # fmt: skip
    if code.example:
        lines.append(f"  For example: {code.example}")
    return "\n".join(lines) + "\n"


def markdown() -> str:
    """docs/errors.md."""
    lines = [
        "# Codes", "",
        "W: warnings. R: why a function needs Python, as `fn.explain()` says. E: errors.",
        "`python -m wengert explain R101` prints one of them; so does the text of a message.",
        "This page is made by `python -m wengert explain --markdown`.", "",
        "| code | the message says | meaning | what to do |", "|---|---|---|---|",
    ]  # fmt: skip
    for code in CODES:
        example = f" ({code.example})" if code.example else ""
        lines.append(f"| {code.code} | {code.words} | {code.meaning}{example} | {code.remedy} |")
    return "\n".join(lines) + "\n"
