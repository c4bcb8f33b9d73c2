; Backward from a result of a compiled function to leaves: one native call finds what was saved,
; computes gradients by another (fastcall.ll) and puts them into `.grad`. Words in braces that begin
; with L_ are places in the list of leaves.py, which says what is there.
;
; Invariants
; - Until gradients are computed nothing has happened, and anything unusual is left to Python.
; - Where the GIL was released meanwhile, leaves are looked at again.

; What Python says to the arguments.
define internal ptr @ask_python(ptr %l, ptr %args) {
  %slow = call ptr @word(ptr %l, i64 ${L_slow})
  %node = call ptr @word(ptr %args, i64 0)
  %seed = call ptr @word(ptr %args, i64 1)
  %keep = call ptr @word(ptr %args, i64 2)
  %answer = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %slow, ptr %node, ptr %seed,
                                                              ptr %keep, ptr null)
  ret ptr %answer
}

; Whether a slot whose offset is the k-th word holds this very object.
define internal i1 @holds(ptr %l, ptr %object, i64 %k, ptr %value) alwaysinline {
  %slot = call i64 @number(ptr %l, i64 %k)
  %found = call ptr @field(ptr %object, i64 %slot)
  %is = icmp eq ptr %found, %value
  ret i1 %is
}

; Whether nothing unusual happened to the node since the call.
define internal i1 @is_untouched(ptr %l, ptr %node) {
  %nothing = call ptr @word(ptr %l, i64 ${L_nothing})
  %none_came = call ptr @word(ptr %l, i64 ${L_none_came})
  %a = call i1 @holds(ptr %l, ptr %node, i64 ${L_before}, ptr @None)
  %b = call i1 @holds(ptr %l, ptr %node, i64 ${L_exposed}, ptr %nothing)
  %c = call i1 @holds(ptr %l, ptr %node, i64 ${L_freed}, ptr @None)
  %d = call i1 @holds(ptr %l, ptr %node, i64 ${L_held}, ptr @None)
  %e = call i1 @holds(ptr %l, ptr %node, i64 ${L_came}, ptr %none_came)
  %ab = and i1 %a, %b
  %cd = and i1 %c, %d
  %abcd = and i1 %ab, %cd
  %all = and i1 %abcd, %e
  ret i1 %all
}

; The k-th tensor that backward is given again; null if its memory was written, or its class is
; another: its elements may not be there yet.
define internal ptr @given_again(ptr %l, ptr %node, i64 %k) {
entry:
  %list = call ptr @word(ptr %l, i64 ${L_inputs})
  %at.p = getelementptr [3 x i64], ptr %list, i64 %k, i32 0
  %checked.p = getelementptr [3 x i64], ptr %list, i64 %k, i32 1
  %class.p = getelementptr [3 x i64], ptr %list, i64 %k, i32 2
  %at = load i64, ptr %at.p
  %checked = load i64, ptr %checked.p
  %class = load ptr, ptr %class.p
  %inputs.slot = call i64 @number(ptr %l, i64 ${L_inputs_slot})
  %inputs = call ptr @field(ptr %node, i64 %inputs.slot)
  %tensor = call ptr @item(ptr %inputs, i64 %at)
  %usual = call i1 @has_type(ptr %tensor, ptr %class)
  br i1 %usual, label %look, label %no
look:
  %unchecked = icmp eq i64 %checked, 0
  br i1 %unchecked, label %yes, label %compare
compare:
  %storage.slot = call i64 @number(ptr %l, i64 ${L_storage})
  %storage = call ptr @field(ptr %tensor, i64 %storage.slot)
  %none = icmp eq ptr %storage, @None
  br i1 %none, label %yes, label %version
version:
  %version.slot = call i64 @number(ptr %l, i64 ${L_version})
  %now = call ptr @field(ptr %storage, i64 %version.slot)
  %versions.slot = call i64 @number(ptr %l, i64 ${L_versions})
  %versions = call ptr @field(ptr %node, i64 %versions.slot)
  %then = call ptr @item(ptr %versions, i64 %at)
  %same = icmp eq ptr %now, %then
  br i1 %same, label %yes, label %no
yes:
  ret ptr %tensor
no:
  ret ptr null
}

; The gradient to start from, an array; null if it is not as usual.
define internal ptr @start_of(ptr %l, ptr %seed) {
entry:
  %implied = icmp eq ptr %seed, @None
  br i1 %implied, label %one, label %given
one:
  %array = call ptr @word(ptr %l, i64 ${L_one})
  ret ptr %array
given:
  %class = call ptr @word(ptr %l, i64 ${L_tensor})
  %usual = call i1 @has_type(ptr %seed, ptr %class)
  br i1 %usual, label %look, label %no
look:
  %dtype = call ptr @word(ptr %l, i64 ${L_seed_dtype})
  %fits = call i1 @holds(ptr %l, ptr %seed, i64 ${L_dtype}, ptr %dtype)
  br i1 %fits, label %yes, label %no
yes:
  %slot = call i64 @number(ptr %l, i64 ${L_array})
  %own = call ptr @field(ptr %seed, i64 %slot)
  ret ptr %own
no:
  ret ptr null
}

; Collects the arrays that backward takes, borrowed; false if something is unusual.
define internal i1 @gather(ptr %l, ptr %node, ptr %seed, ptr %arrays) {
entry:
  %saved.slot = call i64 @number(ptr %l, i64 ${L_saved})
  %saved = call ptr @field(ptr %node, i64 %saved.slot)
  %saved.count = call i64 @number(ptr %l, i64 ${L_saved_count})
  %count = call i64 @number(ptr %l, i64 ${L_input_count})
  %kept = call i64 @number(ptr %l, i64 ${L_kept_count})
  %after = sub i64 %saved.count, %kept
  %slot = call i64 @number(ptr %l, i64 ${L_array})
  %is.tuple = call i1 @has_type(ptr %saved, ptr @tuple)
  br i1 %is.tuple, label %copy, label %no
copy:
  %items = getelementptr i8, ptr %saved, i64 ${TUPLE_ITEMS}
  %bytes = mul i64 %saved.count, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %arrays, ptr %items, i64 %bytes, i1 false)
  br label %next
next:
  %k = phi i64 [ 0, %copy ], [ %k1, %pass ], [ %k1, %take ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %last, label %one
one:
  %tensor = call ptr @given_again(ptr %l, ptr %node, i64 %k)
  %k1 = add i64 %k, 1
  %is.kept = icmp slt i64 %k, %kept
  %lost = icmp eq ptr %tensor, null
  br i1 %lost, label %no, label %pass
pass:
  br i1 %is.kept, label %next, label %take
take:
  %array = call ptr @field(ptr %tensor, i64 %slot)
  %to.k = add i64 %after, %k
  %to = getelementptr ptr, ptr %arrays, i64 %to.k
  store ptr %array, ptr %to
  br label %next
last:
  %start = call ptr @start_of(ptr %l, ptr %seed)
  %start.k = add i64 %after, %count
  %start.p = getelementptr ptr, ptr %arrays, i64 %start.k
  store ptr %start, ptr %start.p
  %well = icmp ne ptr %start, null
  ret i1 %well
no:
  ret i1 false
}

; Of each gradient: the edge that it takes, its dtype, the strides that the leaf must have; then, to
; add to it: its descr, bytes of an element or 0 if NumPy must, rank, sizes, how many elements
%Leaf = type { i64, ptr, ptr, ptr, i64, i64, ptr, i64 }

; Whether native code can add to a gradient that is there.
define internal i1 @may_add(ptr %l, ptr %leaf, ptr %grad) {
entry:
  %class = call ptr @word(ptr %l, i64 ${L_tensor})
  %usual = call i1 @has_type(ptr %grad, ptr %class)
  br i1 %usual, label %look, label %no
look:
  %whole = call i1 @holds(ptr %l, ptr %grad, i64 ${L_view}, ptr @None)
  %plain = call i1 @holds(ptr %l, ptr %grad, i64 ${L_requires_grad}, ptr @False)
  %slot = call i64 @number(ptr %l, i64 ${L_array})
  %array = call ptr @field(ptr %grad, i64 %slot)
  %is.array = call i1 @has_type(ptr %array, ptr @ndarray)
  %two = and i1 %whole, %plain
  %three = and i1 %two, %is.array
  br i1 %three, label %layout, label %no
layout:
  %descr.p = getelementptr %Leaf, ptr %leaf, i32 0, i32 3
  %descr = load ptr, ptr %descr.p
  %bytes.p = getelementptr %Leaf, ptr %leaf, i32 0, i32 4
  %bytes = load i64, ptr %bytes.p
  %rank.p = getelementptr %Leaf, ptr %leaf, i32 0, i32 5
  %rank = load i64, ptr %rank.p
  %dims.p = getelementptr %Leaf, ptr %leaf, i32 0, i32 6
  %dims = load ptr, ptr %dims.p
  %known = icmp ne i64 %bytes, 0
  %descr.now = call ptr @field(ptr %array, i64 ${DESCR})
  %descr.ok = icmp eq ptr %descr.now, %descr
  %flags.at = getelementptr i8, ptr %array, i64 ${FLAGS}
  %flags = load i32, ptr %flags.at
  %flags.set = and i32 %flags, ${WRITEABLE_FLAGS}
  %flags.ok = icmp eq i32 %flags.set, ${WRITEABLE_FLAGS}
  %nd.at = getelementptr i8, ptr %array, i64 ${ND}
  %nd = load i32, ptr %nd.at
  %nd.long = zext i32 %nd to i64
  %nd.ok = icmp eq i64 %nd.long, %rank
  %a = and i1 %known, %descr.ok
  %b = and i1 %flags.ok, %nd.ok
  %c = and i1 %a, %b
  br i1 %c, label %sizes, label %no
sizes:
  %dims.now = call ptr @field(ptr %array, i64 ${DIMS})
  %same = call i1 @same_words(ptr %dims.now, ptr %dims, i64 %rank)
  ret i1 %same
no:
  ret i1 false
}

; The leaf at the end of an edge, borrowed; null if there is none, or somebody watches that.
define internal ptr @end_of(ptr %l, ptr %edge) {
entry:
  %none = icmp eq ptr %edge, @None
  br i1 %none, label %no, label %follow
follow:
  %target = call ptr @item(ptr %edge, i64 0)
  %class = call ptr @word(ptr %l, i64 ${L_accumulator})
  %is.end = call i1 @has_type(ptr %target, ptr %class)
  br i1 %is.end, label %look, label %no
look:
  %quiet = call i1 @holds(ptr %l, ptr %target, i64 ${L_extra}, ptr @None)
  %variable.slot = call i64 @number(ptr %l, i64 ${L_variable})
  %variable = call ptr @field(ptr %target, i64 %variable.slot)
  %found = select i1 %quiet, ptr %variable, ptr null
  ret ptr %found
no:
  ret ptr null
}

; The same for the k-th edge of a node, which may not be made yet.
define internal ptr @leaf_behind(ptr %l, ptr %node, i64 %k) {
entry:
  %edges.slot = call i64 @number(ptr %l, i64 ${L_edges})
  %edges = call ptr @field(ptr %node, i64 %edges.slot)
  %unmade = icmp eq ptr %edges, null
  br i1 %unmade, label %look, label %made
made:
  %edge = call ptr @item(ptr %edges, i64 %k)
  br label %follow
look:
  %unmade.slot = call i64 @number(ptr %l, i64 ${L_unmade})
  %known = call ptr @field(ptr %node, i64 %unmade.slot)
  %one = call ptr @item(ptr %known, i64 %k)
  %class = call ptr @word(ptr %l, i64 ${L_unmade_class})
  %stands = call i1 @has_type(ptr %one, ptr %class)
  br i1 %stands, label %quiet, label %follow
quiet:
  %as.new = call i1 @holds(ptr %l, ptr %one, i64 ${L_unmade_accumulator}, ptr @None)
  br i1 %as.new, label %take, label %no
take:
  %wanted = call ptr @word(ptr %l, i64 ${L_wanted})
  %at = call i64 @number(ptr %wanted, i64 %k)
  %inputs.slot = call i64 @number(ptr %l, i64 ${L_inputs_slot})
  %inputs = call ptr @field(ptr %node, i64 %inputs.slot)
  %leaf = call ptr @item(ptr %inputs, i64 %at)
  ret ptr %leaf
follow:
  %either = phi ptr [ %edge, %made ], [ %one, %look ]
  %end = call ptr @end_of(ptr %l, ptr %either)
  ret ptr %end
no:
  ret ptr null
}

; Whether a gradient can be put into this leaf, which may be null, without more.
define internal i1 @may_put(ptr %l, ptr %leaf, ptr %variable) {
entry:
  %none = icmp eq ptr %variable, null
  br i1 %none, label %no, label %facts
facts:
  %facts.slot = call i64 @number(ptr %l, i64 ${L_leaf})
  %known = call ptr @field(ptr %variable, i64 %facts.slot)
  %unknown = icmp eq ptr %known, @None
  br i1 %unknown, label %no, label %hooks
hooks:
  %hookless = call i1 @holds(ptr %l, ptr %known, i64 ${L_hooks}, ptr @None)
  %afterless = call i1 @holds(ptr %l, ptr %known, i64 ${L_post_hooks}, ptr @None)
  %needs = call i1 @holds(ptr %l, ptr %variable, i64 ${L_requires_grad}, ptr @True)
  %dtype.p = getelementptr %Leaf, ptr %leaf, i32 0, i32 1
  %dtype = load ptr, ptr %dtype.p
  %dtype.ok = call i1 @holds(ptr %l, ptr %variable, i64 ${L_dtype}, ptr %dtype)
  %a = and i1 %hookless, %afterless
  %b = and i1 %needs, %dtype.ok
  %c = and i1 %a, %b
  br i1 %c, label %layout, label %no
layout:
  %rank.p = getelementptr %Leaf, ptr %leaf, i32 0, i32 5
  %rank = load i64, ptr %rank.p
  %strides.p = getelementptr %Leaf, ptr %leaf, i32 0, i32 2
  %strides = load ptr, ptr %strides.p
  %array.slot = call i64 @number(ptr %l, i64 ${L_array})
  %array = call ptr @field(ptr %variable, i64 %array.slot)
  %nd.at = getelementptr i8, ptr %array, i64 ${ND}
  %nd = load i32, ptr %nd.at
  %nd.long = zext i32 %nd to i64
  %nd.ok = icmp eq i64 %nd.long, %rank
  br i1 %nd.ok, label %order, label %no
order:
  %strides.now = call ptr @field(ptr %array, i64 ${STRIDES})
  %strides.ok = call i1 @same_words(ptr %strides.now, ptr %strides, i64 %rank)
  br i1 %strides.ok, label %before, label %no
before:
  %grad.slot = call i64 @number(ptr %l, i64 ${L_grad})
  %grad = call ptr @field(ptr %variable, i64 %grad.slot)
  %first = icmp eq ptr %grad, @None
  br i1 %first, label %yes, label %add
add:
  %addable = call i1 @may_add(ptr %l, ptr %leaf, ptr %grad)
  br i1 %addable, label %yes, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; All leaves, borrowed; false if one is unusual, or one is there twice.
define internal i1 @find_leaves(ptr %l, ptr %node, ptr %found) {
entry:
  %count = call i64 @number(ptr %l, i64 ${L_leaf_count})
  %leaves = call ptr @word(ptr %l, i64 ${L_leaves})
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %good ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %yes, label %one
one:
  %leaf = getelementptr %Leaf, ptr %leaves, i64 %k
  %at = load i64, ptr %leaf
  %variable = call ptr @leaf_behind(ptr %l, ptr %node, i64 %at)
  %usual = call i1 @may_put(ptr %l, ptr %leaf, ptr %variable)
  br i1 %usual, label %again, label %no
again:
  %i = phi i64 [ 0, %one ], [ %i1, %other ]
  %all = icmp eq i64 %i, %k
  br i1 %all, label %good, label %other
other:
  %earlier = call ptr @word(ptr %found, i64 %i)
  %twice = icmp eq ptr %earlier, %variable
  %i1 = add i64 %i, 1
  br i1 %twice, label %no, label %again
good:
  %to = getelementptr ptr, ptr %found, i64 %k
  store ptr %variable, ptr %to
  %k1 = add i64 %k, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; `node.forget_inputs()`; false on an error.
define internal i1 @forget_inputs(ptr %l, ptr %node) {
entry:
  %inputs.slot = call i64 @number(ptr %l, i64 ${L_inputs_slot})
  %inputs = call ptr @field(ptr %node, i64 %inputs.slot)
  %unmade.slot = call i64 @number(ptr %l, i64 ${L_unmade})
  %unmade = call ptr @field(ptr %node, i64 %unmade.slot)
  %wanted = call ptr @word(ptr %l, i64 ${L_wanted})
  %class = call ptr @word(ptr %l, i64 ${L_unmade_class})
  %size = call ptr @field(ptr %unmade, i64 ${TUPLE_SIZE})
  %count = ptrtoint ptr %size to i64
  %none = icmp eq i64 %count, 0
  br i1 %none, label %drop, label %start
start:
  %double = mul i64 %count, 2
  %all = alloca ptr, i64 %double, align 16
  br label %next
next:
  %k = phi i64 [ 0, %start ], [ %k1, %one ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %join, label %one
one:
  %known = call ptr @item(ptr %unmade, i64 %k)
  %at = call i64 @number(ptr %wanted, i64 %k)
  %input = call ptr @item(ptr %inputs, i64 %at)
  %stands = call i1 @has_type(ptr %known, ptr %class)
  %leaf = select i1 %stands, ptr %input, ptr @None
  %behind = add i64 %k, %count
  %known.p = getelementptr ptr, ptr %all, i64 %k
  %leaf.p = getelementptr ptr, ptr %all, i64 %behind
  store ptr %known, ptr %known.p
  store ptr %leaf, ptr %leaf.p
  %k1 = add i64 %k, 1
  br label %next
join:
  call void @retain(ptr %all, i64 %double)
  %tuple = call ptr @tuple_of(ptr %all, i64 %double)
  %failed = icmp eq ptr %tuple, null
  br i1 %failed, label %no, label %keep
keep:
  call void @replace(ptr %node, i64 %unmade.slot, ptr %tuple)
  br label %drop
drop:
  call void @Py_IncRef(ptr @None)
  call void @replace(ptr %node, i64 %inputs.slot, ptr @None)
  ret i1 true
no:
  ret i1 false
}

; `node.release(Freed(place))`; false on an error.
define internal i1 @spend(ptr %l, ptr %node, ptr %place) {
entry:
  %class = call ptr @word(ptr %l, i64 ${L_freed_class})
  %freed = call ptr @PyType_GenericAlloc(ptr %class, i64 0)
  %failed = icmp eq ptr %freed, null
  br i1 %failed, label %no, label %mark
mark:
  %place.slot = call i64 @number(ptr %l, i64 ${L_freed_place})
  call void @Py_IncRef(ptr %place)
  call void @put(ptr %freed, i64 %place.slot, ptr %place)
  %freed.slot = call i64 @number(ptr %l, i64 ${L_freed})
  call void @replace(ptr %node, i64 %freed.slot, ptr %freed)
  %came.slot = call i64 @number(ptr %l, i64 ${L_came})
  %came = call ptr @word(ptr %l, i64 ${L_came_after})
  call void @Py_IncRef(ptr %came)
  call void @replace(ptr %node, i64 %came.slot, ptr %came)
  %all = call i64 @number(ptr %l, i64 ${L_is_done})
  %done = icmp ne i64 %all, 0
  br i1 %done, label %empty, label %yes
empty:
  %reference.slot = call i64 @number(ptr %l, i64 ${L_reference})
  %reference = call ptr @field(ptr %node, i64 %reference.slot)
  %unread = icmp eq ptr %reference, @None
  br i1 %unread, label %drop, label %forget
forget:
  %readers = call ptr @word(ptr %l, i64 ${L_readers})
  %known = call i32 @PySet_Discard(ptr %readers, ptr %reference)
  %odd = icmp slt i32 %known, 0
  br i1 %odd, label %no, label %drop
drop:
  call void @Py_IncRef(ptr @None)
  %saved.slot = call i64 @number(ptr %l, i64 ${L_saved})
  call void @replace(ptr %node, i64 %saved.slot, ptr @None)
  %forgot = call i1 @forget_inputs(ptr %l, ptr %node)
  ret i1 %forgot
yes:
  ret i1 true
no:
  ret i1 false
}

define internal void @sum_into(ptr %leaf, ptr %to, ptr %from) {
entry:
  %bytes.p = getelementptr %Leaf, ptr %leaf, i32 0, i32 4
  %bytes = load i64, ptr %bytes.p
  %count.p = getelementptr %Leaf, ptr %leaf, i32 0, i32 7
  %count = load i64, ptr %count.p
  %single = icmp eq i64 %bytes, 4
  br i1 %single, label %floats, label %doubles
floats:
  %i = phi i64 [ 0, %entry ], [ %i1, %float ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %out, label %float
float:
  %a.p = getelementptr float, ptr %to, i64 %i
  %b.p = getelementptr float, ptr %from, i64 %i
  %a = load float, ptr %a.p
  %b = load float, ptr %b.p
  %sum = fadd float %a, %b
  store float %sum, ptr %a.p
  %i1 = add i64 %i, 1
  br label %floats
doubles:
  %k = phi i64 [ 0, %entry ], [ %k1, %double ]
  %last = icmp eq i64 %k, %count
  br i1 %last, label %out, label %double
double:
  %c.p = getelementptr double, ptr %to, i64 %k
  %d.p = getelementptr double, ptr %from, i64 %k
  %c = load double, ptr %c.p
  %d = load double, ptr %d.p
  %total = fadd double %c, %d
  store double %total, ptr %c.p
  %k1 = add i64 %k, 1
  br label %doubles
out:
  ret void
}

; `storage.note_write(place)` of a gradient; false on an error.
define internal i1 @note_write(ptr %l, ptr %grad, ptr %place) {
entry:
  %storage.slot = call i64 @number(ptr %l, i64 ${L_storage})
  %storage = call ptr @field(ptr %grad, i64 %storage.slot)
  %new = icmp eq ptr %storage, @None
  br i1 %new, label %ask, label %count
ask:
  %note = call ptr @word(ptr %l, i64 ${L_note})
  %noted = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %note, ptr %grad, ptr %place,
                                                             ptr null)
  %failed = icmp eq ptr %noted, null
  br i1 %failed, label %no, label %done
done:
  call void @Py_DecRef(ptr %noted)
  ret i1 true
count:
  %version.slot = call i64 @number(ptr %l, i64 ${L_version})
  %before = call ptr @field(ptr %storage, i64 %version.slot)
  %number = call i64 @PyLong_AsLongLong(ptr %before)
  %next = add i64 %number, 1
  %version = call ptr @PyLong_FromLongLong(i64 %next)
  %poor = icmp eq ptr %version, null
  br i1 %poor, label %no, label %keep
keep:
  call void @replace(ptr %storage, i64 %version.slot, ptr %version)
  %written.slot = call i64 @number(ptr %l, i64 ${L_written})
  call void @Py_IncRef(ptr %place)
  call void @replace(ptr %storage, i64 %written.slot, ptr %place)
  ret i1 true
no:
  ret i1 false
}

; Adds to the gradient that is there, and says so; false on an error.
define internal i1 @add_to(ptr %l, ptr %leaf, ptr %here, ptr %grad, ptr %place) {
entry:
  %slot = call i64 @number(ptr %l, i64 ${L_array})
  %array = call ptr @field(ptr %here, i64 %slot)
  %other = call ptr @field(ptr %grad, i64 %slot)
  %readers = call ptr @word(ptr %l, i64 ${L_readers})
  %reading = call ptr @field(ptr %readers, i64 ${SET_USED})
  %alone = icmp eq ptr %reading, null
  br i1 %alone, label %add, label %tell
tell:
  %announce = call ptr @word(ptr %l, i64 ${L_announce})
  %told = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %announce, ptr %array, ptr null)
  %failed = icmp eq ptr %told, null
  br i1 %failed, label %no, label %heard
heard:
  call void @Py_DecRef(ptr %told)
  br label %add
add:
  %to = call ptr @field(ptr %array, i64 ${DATA})
  %from = call ptr @field(ptr %other, i64 ${DATA})
  call void @sum_into(ptr %leaf, ptr %to, ptr %from)
  %noted = call i1 @note_write(ptr %l, ptr %here, ptr %place)
  ret i1 %noted
no:
  ret i1 false
}

; Puts gradients into `.grad` of the leaves; false on an error.
define internal i1 @deposit(ptr %l, ptr %found, ptr %grads, ptr %place) {
entry:
  %count = call i64 @number(ptr %l, i64 ${L_leaf_count})
  %leaves = call ptr @word(ptr %l, i64 ${L_leaves})
  %slot = call i64 @number(ptr %l, i64 ${L_grad})
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %passed ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %yes, label %one
one:
  %leaf = getelementptr %Leaf, ptr %leaves, i64 %k
  %variable = call ptr @word(ptr %found, i64 %k)
  %grad = call ptr @item(ptr %grads, i64 %k)
  %here = call ptr @field(ptr %variable, i64 %slot)
  %first = icmp eq ptr %here, @None
  br i1 %first, label %take, label %add
take:
  call void @Py_IncRef(ptr %grad)
  call void @replace(ptr %variable, i64 %slot, ptr %grad)
  br label %passed
add:
  %added = call i1 @add_to(ptr %l, ptr %leaf, ptr %here, ptr %grad, ptr %place)
  br i1 %added, label %passed, label %no
passed:
  %k1 = add i64 %k, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; After gradients were computed: frees what was saved, unless it is kept, and puts them where they
; belong. False on an error.
define internal i1 @conclude(ptr %l, ptr %node, ptr %keep, ptr %found, ptr %grads) {
entry:
  %whence = call ptr @word(ptr %l, i64 ${L_whence})
  %place = call ptr @wengert_place(ptr %whence)
  %lost = icmp eq ptr %place, null
  br i1 %lost, label %no, label %number
number:
  %numbers.slot = call i64 @number(ptr %l, i64 ${L_numbers})
  %given = call ptr @word(ptr %l, i64 ${L_given})
  call void @Py_IncRef(ptr %given)
  call void @replace(ptr %node, i64 %numbers.slot, ptr %given)
  %kept = call i32 @PyObject_IsTrue(ptr %keep)
  switch i32 %kept, label %deposit [ i32 0, label %free
                                     i32 -1, label %drop ]
free:
  %freed = call i1 @spend(ptr %l, ptr %node, ptr %place)
  br i1 %freed, label %deposit, label %drop
deposit:
  %well = call i1 @deposit(ptr %l, ptr %found, ptr %grads, ptr %place)
  call void @Py_DecRef(ptr %place)
  ret i1 %well
drop:
  call void @Py_DecRef(ptr %place)
  br label %no
no:
  ret i1 false
}

; The arguments are a node, the gradient given or None, and whether to keep the graph.
define ptr @wengert_to_leaves(ptr %self, ptr %args, i64 %nargs) {
entry:
  %l = call ptr @field(ptr %self, i64 ${DATA})
  %leaf.count = call i64 @number(ptr %l, i64 ${L_leaf_count})
  %count = call i64 @number(ptr %l, i64 ${L_array_count})
  %arrays = alloca ptr, i64 %count, align 16
  %found = alloca ptr, i64 %leaf.count, align 16
  %node = call ptr @word(ptr %args, i64 0)
  %seed = call ptr @word(ptr %args, i64 1)
  %keep = call ptr @word(ptr %args, i64 2)
  %untouched = call i1 @is_untouched(ptr %l, ptr %node)
  br i1 %untouched, label %look, label %ask
look:
  %gathered = call i1 @gather(ptr %l, ptr %node, ptr %seed, ptr %arrays)
  br i1 %gathered, label %leaves, label %ask
leaves:
  %usual = call i1 @find_leaves(ptr %l, ptr %node, ptr %found)
  br i1 %usual, label %run, label %ask
run:
  call void @retain(ptr %arrays, i64 %count)
  %callable = call ptr @word(ptr %l, i64 ${L_call})
  %grads = call ptr @wengert_call(ptr %callable, ptr %arrays, i64 %count)
  call void @release(ptr %arrays, i64 %count)
  %failed = icmp eq ptr %grads, null
  br i1 %failed, label %error, label %judge
judge:
  %made = call i1 @has_type(ptr %grads, ptr @tuple)
  br i1 %made, label %again, label %drop
again:
  %still = call i1 @is_untouched(ptr %l, ptr %node)
  br i1 %still, label %recheck, label %drop
recheck:
  %same = call i1 @find_leaves(ptr %l, ptr %node, ptr %found)
  br i1 %same, label %finish, label %drop
finish:
  %well = call i1 @conclude(ptr %l, ptr %node, ptr %keep, ptr %found, ptr %grads)
  call void @Py_DecRef(ptr %grads)
  br i1 %well, label %yes, label %error
yes:
  call void @Py_IncRef(ptr @True)
  ret ptr @True
drop:
  call void @Py_DecRef(ptr %grads)
  br label %ask
ask:
  %asked = call ptr @ask_python(ptr %l, ptr %args)
  ret ptr %asked
error:
  ret ptr null
}
