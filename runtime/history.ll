; What a call leaves behind beside its results: their node in the graph of eager, with what it
; keeps. Between objects.ll and fastcall.ll. Words in braces that begin with H_ are places in the
; list of history.py, which says what is there, P_ in a smaller one; the others are offsets from
; layout.py. Edges are in edges.ll.
;
; Invariants
; - All that is made here is what the Python of `CompiledFunctionBackward` makes, in that order.
; - What is rare is left to Python: views, leaves without facts, files never seen, memory that
;   NumPy's users hold.
; - Objects that are not whole yet have null in their slots: who traverses or frees them may.

; A new object of a class with these objects in its slots: a count, then pairs; null if there is no
; memory.
define internal ptr @new_object(ptr %class, ptr %facts) {
entry:
  %object = call ptr @PyType_GenericAlloc(ptr %class, i64 0)
  %failed = icmp eq ptr %object, null
  br i1 %failed, label %no, label %fill
no:
  ret ptr null
fill:
  call void @fill(ptr %object, ptr %facts)
  ret ptr %object
}

; A tuple of two objects; takes over both references, of which the first may be null: an error.
define internal ptr @pair(ptr %a, ptr %b) {
entry:
  %both = alloca [2 x ptr], align 16
  %second = getelementptr ptr, ptr %both, i64 1
  store ptr %a, ptr %both
  store ptr %b, ptr %second
  %failed = icmp eq ptr %a, null
  br i1 %failed, label %no, label %yes
no:
  call void @Py_DecRef(ptr %b)
  ret ptr null
yes:
  %tuple = call ptr @tuple_of(ptr %both, i64 2)
  ret ptr %tuple
}

; A new tensor of a Python float: a record of it, and where its double is.
define internal ptr @number_tensor(ptr %record, ptr %value) {
entry:
  %descr.p = getelementptr %Record, ptr %record, i32 0, i32 3
  %descr = load ptr, ptr %descr.p
  call void @Py_IncRef(ptr %descr)         ; which the next call takes over
  %array = call ptr @PyArray_NewFromDescr(ptr @ndarray, ptr %descr, i32 0, ptr null, ptr null,
                                          ptr null, i32 0, ptr null)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %no, label %fill
fill:
  %data = call ptr @field(ptr %array, i64 ${DATA})
  %double = load i64, ptr %value
  store i64 %double, ptr %data
  %tensor = call ptr @wrap(ptr %record, ptr %array)
  ret ptr %tensor
no:
  ret ptr null
}

; The k-th tensor that the call read: an argument, one that is always the same, or a number, which
; is an argument or lies in memory. Null on an error.
define internal ptr @input(ptr %h, ptr %args, i64 %k) {
entry:
  %list = call ptr @word(ptr %h, i64 ${H_inputs})
  %at.p = getelementptr [3 x i64], ptr %list, i64 %k, i32 0
  %fixed.p = getelementptr [3 x i64], ptr %list, i64 %k, i32 1
  %record.p = getelementptr [3 x i64], ptr %list, i64 %k, i32 2
  %at = load i64, ptr %at.p
  %fixed = load ptr, ptr %fixed.p
  %record = load ptr, ptr %record.p
  %given = icmp sge i64 %at, 0
  br i1 %given, label %argument, label %known
argument:
  %arg = call ptr @word(ptr %args, i64 %at)
  br label %known
known:
  %found = phi ptr [ %fixed, %entry ], [ %arg, %argument ]
  %is.tensor = icmp eq ptr %record, null
  br i1 %is.tensor, label %tensor, label %number
tensor:
  call void @Py_IncRef(ptr %found)
  ret ptr %found
number:
  %inside = getelementptr i8, ptr %found, i64 ${FLOAT}
  %value = select i1 %given, ptr %inside, ptr %found
  %made = call ptr @number_tensor(ptr %record, ptr %value)
  ret ptr %made
}

; The version of a tensor's memory, borrowed.
define internal ptr @version(ptr %h, ptr %tensor) alwaysinline {
entry:
  %slot = call i64 @number(ptr %h, i64 ${H_storage})
  %storage = call ptr @field(ptr %tensor, i64 %slot)
  %none = icmp eq ptr %storage, @None
  br i1 %none, label %zero, label %look
zero:
  %first = call ptr @word(ptr %h, i64 ${H_zero})
  ret ptr %first
look:
  %at = call i64 @number(ptr %h, i64 ${H_version})
  %now = call ptr @field(ptr %storage, i64 %at)
  ret ptr %now
}

; The frame of Python that is so many out, or null.
define internal ptr @frame(i64 %depth) {
entry:
  %thread = call ptr @PyThreadState_Get()
  %first = call ptr @PyThreadState_GetFrame(ptr %thread)
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %further ]
  %frame = phi ptr [ %first, %entry ], [ %back, %further ]
  %end = icmp eq i64 %k, %depth
  %none = icmp eq ptr %frame, null
  %stop = or i1 %end, %none
  br i1 %stop, label %out, label %further
further:
  %back = call ptr @PyFrame_GetBack(ptr %frame)
  call void @Py_DecRef(ptr %frame)
  %k1 = add i64 %k, 1
  br label %next
out:
  ret ptr %frame
}

; Whether code is the user's: 1 or 0, -1 where nobody knows. A list has the code that was last.
define internal i32 @is_users(ptr %p, ptr %code) {
entry:
  %last.list = call ptr @word(ptr %p, i64 ${P_last})
  %items = call ptr @field(ptr %last.list, i64 ${TUPLE_ITEMS})
  %last = load ptr, ptr %items
  %same = icmp eq ptr %code, %last
  br i1 %same, label %users, label %look
look:
  %ours = call ptr @word(ptr %p, i64 ${P_files})
  %file.name = call ptr @word(ptr %p, i64 ${P_co_filename})
  %file = call ptr @PyObject_GetAttr(ptr %code, ptr %file.name)
  %nameless = icmp eq ptr %file, null
  br i1 %nameless, label %unknown, label %named
named:
  %known = call ptr @PyDict_GetItem(ptr %ours, ptr %file)
  call void @Py_DecRef(ptr %file)
  %is.users = icmp eq ptr %known, @False
  br i1 %is.users, label %remember, label %library
library:
  %is.ours = icmp eq ptr %known, @True
  br i1 %is.ours, label %no, label %unknown
remember:
  call void @Py_IncRef(ptr %code)
  %r = call i32 @PyList_SetItem(ptr %last.list, i64 0, ptr %code)
  br label %users
users:
  ret i32 1
no:
  ret i32 0
unknown:
  ret i32 -1
}

; The pair of code, to which it takes over the reference, and a number: a list has the last pair,
; which a loop asks for again and again. Null on an error.
define internal ptr @place_in(ptr %p, ptr %code, i64 %at) {
entry:
  %list = call ptr @word(ptr %p, i64 ${P_last})
  %items = call ptr @field(ptr %list, i64 ${TUPLE_ITEMS})
  %last = call ptr @word(ptr %items, i64 1)
  %last.at = call i64 @number(ptr %p, i64 ${P_at})
  %again = icmp eq i64 %at, %last.at           ; never before there is a pair
  br i1 %again, label %look, label %make
look:
  %last.code = call ptr @item(ptr %last, i64 0)
  %same = icmp eq ptr %code, %last.code
  br i1 %same, label %take, label %make
take:
  call void @Py_DecRef(ptr %code)
  call void @Py_IncRef(ptr %last)
  ret ptr %last
make:
  %number = call ptr @PyLong_FromLongLong(i64 %at)
  %failed = icmp eq ptr %number, null
  br i1 %failed, label %drop, label %join
drop:
  call void @Py_DecRef(ptr %code)
  br label %no
join:
  %new = call ptr @pair(ptr %code, ptr %number)
  %poor = icmp eq ptr %new, null
  br i1 %poor, label %no, label %keep
keep:
  %at.p = getelementptr i64, ptr %p, i64 ${P_at}
  store i64 %at, ptr %at.p
  call void @Py_IncRef(ptr %new)
  %r = call i32 @PyList_SetItem(ptr %list, i64 1, ptr %new)
  ret ptr %new
no:
  ret ptr null
}

; The user's code and where in it he is: `user_place()`.
define ptr @wengert_place(ptr %p) {
entry:
  %depth = call i64 @number(ptr %p, i64 ${P_depth})
  %first = call ptr @frame(i64 %depth)
  br label %next
next:
  %frame = phi ptr [ %first, %entry ], [ %back, %further ]
  %none = icmp eq ptr %frame, null
  br i1 %none, label %lost, label %look
look:
  %code = call ptr @PyFrame_GetCode(ptr %frame)
  %whose = call i32 @is_users(ptr %p, ptr %code)
  switch i32 %whose, label %unknown [ i32 1, label %users
                                      i32 0, label %further ]
further:
  call void @Py_DecRef(ptr %code)
  %back = call ptr @PyFrame_GetBack(ptr %frame)
  call void @Py_DecRef(ptr %frame)
  br label %next
users:
  %at = call i64 @last_instruction(ptr %p, ptr %frame)
  call void @Py_DecRef(ptr %frame)
  %found.place = call ptr @place_in(ptr %p, ptr %code, i64 %at)
  ret ptr %found.place
unknown:
  call void @Py_DecRef(ptr %code)
  call void @Py_DecRef(ptr %frame)
  br label %lost
lost:
  call void @PyErr_Clear()
  %user_place = call ptr @word(ptr %p, i64 ${P_user_place})
  %asked = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %user_place, ptr null)
  ret ptr %asked
}

; Whether others than tensors may hold the memory of an array: 1 or 0, -1 on an error.
define internal i32 @is_exposed(ptr %exposed, ptr %array) {
entry:
  br label %next
next:
  %owner = phi ptr [ %array, %entry ], [ %base, %further ]
  %base = call ptr @field(ptr %owner, i64 ${BASE})
  %owns = icmp eq ptr %base, null
  br i1 %owns, label %bottom, label %further
further:
  %type = call ptr @field(ptr %base, i64 ${TYPE})
  %plain = icmp eq ptr %type, @ndarray
  br i1 %plain, label %next, label %yes
bottom:
  %count = call ptr @field(ptr %exposed, i64 ${DICT_USED})
  %none = icmp eq ptr %count, null
  br i1 %none, label %no, label %look
look:
  %id = call ptr @PyLong_FromVoidPtr(ptr %owner)
  %failed = icmp eq ptr %id, null
  br i1 %failed, label %error, label %find
find:
  %found = call i32 @PyDict_Contains(ptr %exposed, ptr %id)
  call void @Py_DecRef(ptr %id)
  ret i32 %found
yes:
  ret i32 1
no:
  ret i32 0
error:
  ret i32 -1
}

; The same for all tensors that the call read.
define internal i32 @are_exposed(ptr %h, ptr %node) {
entry:
  %inputs.slot = call i64 @number(ptr %h, i64 ${H_inputs_slot})
  %inputs = call ptr @field(ptr %node, i64 %inputs.slot)
  %exposed = call ptr @word(ptr %h, i64 ${H_exposed})
  %count = call i64 @number(ptr %h, i64 ${H_input_count})
  %slot = call i64 @number(ptr %h, i64 ${H_array})
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %one ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %no, label %one
one:
  %tensor = call ptr @item(ptr %inputs, i64 %k)
  %array = call ptr @field(ptr %tensor, i64 %slot)
  %found = call i32 @is_exposed(ptr %exposed, ptr %array)
  %private = icmp eq i32 %found, 0
  %k1 = add i64 %k, 1
  br i1 %private, label %next, label %yes
yes:
  ret i32 %found
no:
  ret i32 0
}

; A new storage of an array, put into the slot of its tensor; borrowed, null on an error. `h` says
; where the array of a tensor is, and what a storage is.
define internal ptr @new_storage(ptr %h, ptr %tensor, ptr %array) {
entry:
  %class = call ptr @word(ptr %h, i64 ${H_storage_class})
  %slots = call ptr @word(ptr %h, i64 ${H_storage_slots})
  %new = call ptr @new_object(ptr %class, ptr %slots)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %out, label %fill
fill:
  %root.slot = call i64 @number(ptr %h, i64 ${H_root})
  call void @Py_IncRef(ptr %array)
  call void @put(ptr %new, i64 %root.slot, ptr %array)
  %slot = call i64 @number(ptr %h, i64 ${H_storage})
  call void @replace(ptr %tensor, i64 %slot, ptr %new)
  br label %out
out:
  ret ptr %new
}

; Puts three references for a result into memory: its array, its storage and the version of that.
define internal i1 @hold(ptr %h, ptr %result, ptr %to) {
entry:
  %array.slot = call i64 @number(ptr %h, i64 ${H_array})
  %array = call ptr @field(ptr %result, i64 %array.slot)
  %slot = call i64 @number(ptr %h, i64 ${H_storage})
  %known = call ptr @field(ptr %result, i64 %slot)
  %none = icmp eq ptr %known, @None
  br i1 %none, label %make, label %put
make:
  %new = call ptr @new_storage(ptr %h, ptr %result, ptr %array)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %no, label %put
put:
  %storage = phi ptr [ %known, %entry ], [ %new, %make ]
  %version = call ptr @version(ptr %h, ptr %result)
  %second = getelementptr ptr, ptr %to, i64 1
  %third = getelementptr ptr, ptr %to, i64 2
  store ptr %array, ptr %to
  store ptr %storage, ptr %second
  store ptr %version, ptr %third
  call void @retain(ptr %to, i64 3)
  ret i1 true
no:
  ret i1 false
}

; The same for all results that backward will read, as a tuple of the node.
define internal i1 @hold_results(ptr %h, ptr %node, ptr %made) {
entry:
  %count = call i64 @number(ptr %h, i64 ${H_held_count})
  %list = call ptr @word(ptr %h, i64 ${H_held})
  %none = icmp eq i64 %count, 0
  br i1 %none, label %yes, label %start
start:
  %size = mul i64 %count, 3
  %all = alloca ptr, i64 %size, align 16
  br label %next
next:
  %k = phi i64 [ 0, %start ], [ %k1, %one ]
  %from = mul i64 %k, 3
  %end = icmp eq i64 %k, %count
  br i1 %end, label %join, label %one
one:
  %at = call i64 @number(ptr %list, i64 %k)
  %result = call ptr @word(ptr %made, i64 %at)
  %to = getelementptr ptr, ptr %all, i64 %from
  %held = call i1 @hold(ptr %h, ptr %result, ptr %to)
  %k1 = add i64 %k, 1
  br i1 %held, label %next, label %drop
join:
  %tuple = call ptr @tuple_of(ptr %all, i64 %size)
  %poor = icmp eq ptr %tuple, null
  br i1 %poor, label %no, label %give
give:
  %slot = call i64 @number(ptr %h, i64 ${H_held_slot})
  call void @replace(ptr %node, i64 %slot, ptr %tuple)
  br label %yes
yes:
  ret i1 true
drop:
  call void @release(ptr %all, i64 %from)
  br label %no
no:
  ret i1 false
}

; Backward will read again: whoever writes must tell. `node.watch(results)`.
define internal i1 @reads_later(ptr %h, ptr %node, ptr %made, i64 %shown) {
entry:
  %readers = call ptr @word(ptr %h, i64 ${H_readers})
  %never = icmp eq ptr %readers, null
  br i1 %never, label %yes, label %memory
memory:
  %seen = call i32 @are_exposed(ptr %h, ptr %node)
  switch i32 %seen, label %no [ i32 0, label %refer
                                i32 1, label %ask ]
refer:
  %forget = call ptr @word(ptr %h, i64 ${H_forget})
  %reference = call ptr @PyWeakref_NewRef(ptr %node, ptr %forget)
  %poor = icmp eq ptr %reference, null
  br i1 %poor, label %no, label %add
add:
  %slot = call i64 @number(ptr %h, i64 ${H_reference})
  %before = call ptr @field(ptr %node, i64 %slot)
  call void @put(ptr %node, i64 %slot, ptr %reference)
  call void @Py_DecRef(ptr %before)
  %added = call i32 @PySet_Add(ptr %readers, ptr %reference)
  %well = icmp eq i32 %added, 0
  br i1 %well, label %results, label %no
results:
  %held = call i1 @hold_results(ptr %h, ptr %node, ptr %made)
  ret i1 %held
ask:
  call void @retain(ptr %made, i64 %shown)
  %shown.all = call ptr @tuple_of(ptr %made, i64 %shown)
  %lost = icmp eq ptr %shown.all, null
  br i1 %lost, label %no, label %call
call:
  %watch = call ptr @word(ptr %h, i64 ${H_watch})
  %answer = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %watch, ptr %node, ptr %shown.all,
                                                              ptr null)
  call void @Py_DecRef(ptr %shown.all)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %no, label %done
done:
  call void @Py_DecRef(ptr %answer)
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

; Fills the room in what the node has saved: with arrays of some of the tensors read.
define internal void @keep_arrays(ptr %h, ptr %tensors, ptr %node) {
entry:
  %count = call i64 @number(ptr %h, i64 ${H_kept_count})
  %list = call ptr @word(ptr %h, i64 ${H_kept})
  %slot = call i64 @number(ptr %h, i64 ${H_array})
  %saved.slot = call i64 @number(ptr %h, i64 ${H_saved_slot})
  %saved = call ptr @field(ptr %node, i64 %saved.slot)
  %size = call ptr @field(ptr %saved, i64 ${TUPLE_SIZE})
  %size.word = ptrtoint ptr %size to i64
  %first = sub i64 %size.word, %count
  %items = getelementptr i8, ptr %saved, i64 ${TUPLE_ITEMS}
  %room = getelementptr ptr, ptr %items, i64 %first
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %one ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %out, label %one
one:
  %at = call i64 @number(ptr %list, i64 %k)
  %tensor = call ptr @word(ptr %tensors, i64 %at)
  %array = call ptr @field(ptr %tensor, i64 %slot)
  call void @Py_IncRef(ptr %array)
  %to = getelementptr ptr, ptr %room, i64 %k
  store ptr %array, ptr %to
  %k1 = add i64 %k, 1
  br label %next
out:
  ret void
}

; Fills the node's tuples: of the tensors read, their versions, the edges of those in `wanted`.
define internal i1 @keep_inputs(ptr %h, ptr %args, ptr %node) {
entry:
  %count = call i64 @number(ptr %h, i64 ${H_input_count})
  %tensors = alloca ptr, i64 %count, align 16
  %versions = alloca ptr, i64 %count, align 16
  %zero = call ptr @word(ptr %h, i64 ${H_zero})
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %got ]
  %unwritten = phi i1 [ true, %entry ], [ %unwritten1, %got ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %gathered, label %one
one:
  %tensor = call ptr @input(ptr %h, ptr %args, i64 %k)
  %lost = icmp eq ptr %tensor, null
  br i1 %lost, label %short, label %got
short:
  call void @release(ptr %tensors, i64 %k)
  ret i1 false
got:
  %version = call ptr @version(ptr %h, ptr %tensor)
  %tensor.p = getelementptr ptr, ptr %tensors, i64 %k
  %version.p = getelementptr ptr, ptr %versions, i64 %k
  store ptr %tensor, ptr %tensor.p
  store ptr %version, ptr %version.p
  %first = icmp eq ptr %version, %zero
  %unwritten1 = and i1 %unwritten, %first
  %k1 = add i64 %k, 1
  br label %next
gathered:
  %tensors.all = call ptr @tuple_of(ptr %tensors, i64 %count)
  br i1 %unwritten, label %zeros, label %counts
zeros:
  %same = call ptr @word(ptr %h, i64 ${H_zeros})
  call void @Py_IncRef(ptr %same)
  br label %edging
counts:
  call void @retain(ptr %versions, i64 %count)
  %own = call ptr @tuple_of(ptr %versions, i64 %count)
  br label %edging
edging:
  %versions.all = phi ptr [ %same, %zeros ], [ %own, %counts ]
  %inputs.slot = call i64 @number(ptr %h, i64 ${H_inputs_slot})
  %versions.slot = call i64 @number(ptr %h, i64 ${H_versions_slot})
  call void @put(ptr %node, i64 %inputs.slot, ptr %tensors.all)
  call void @put(ptr %node, i64 %versions.slot, ptr %versions.all)
  %no.tensors = icmp eq ptr %tensors.all, null
  %no.versions = icmp eq ptr %versions.all, null
  %poor = or i1 %no.tensors, %no.versions
  br i1 %poor, label %no, label %connect
connect:
  call void @keep_arrays(ptr %h, ptr %tensors, ptr %node)
  %connected = call i1 @keep_edges(ptr %h, ptr %tensors, ptr %node)
  ret i1 %connected
no:
  ret i1 false
}

; Gives the results their node, which takes over `saved` and `states`; false, with the exception set, if that
; fails. `links` has the places of the results' slots for it, zero for those without history.
define internal i1 @give_history(ptr %h, ptr %args, ptr %made, i64 %shown, ptr %saved, ptr %place,
                                 ptr %states) {
entry:
  %class = call ptr @word(ptr %h, i64 ${H_class})
  %slots = call ptr @word(ptr %h, i64 ${H_slots})
  %node = call ptr @new_object(ptr %class, ptr %slots)
  %failed = icmp eq ptr %node, null
  br i1 %failed, label %poor, label %fill
poor:
  call void @Py_DecRef(ptr %saved)
  call void @let_go(ptr %states)
  ret i1 false
fill:
  %saved.slot = call i64 @number(ptr %h, i64 ${H_saved_slot})
  call void @put(ptr %node, i64 %saved.slot, ptr %saved)
  %random = icmp ne ptr %states, null
  br i1 %random, label %draw, label %keep
draw:
  %states.slot = call i64 @number(ptr %h, i64 ${H_states_slot})
  call void @put(ptr %node, i64 %states.slot, ptr %states)
  br label %keep
keep:
  %kept = call i1 @keep_inputs(ptr %h, ptr %args, ptr %node)
  br i1 %kept, label %count, label %drop
count:
  %counter = call ptr @word(ptr %h, i64 ${H_counter})
  %sequence = call ptr @PyIter_Next(ptr %counter)
  %sequence.slot = call i64 @number(ptr %h, i64 ${H_sequence_slot})
  call void @put(ptr %node, i64 %sequence.slot, ptr %sequence)
  %uncounted = icmp eq ptr %sequence, null
  br i1 %uncounted, label %drop, label %link
link:
  %place.slot = call i64 @number(ptr %h, i64 ${H_place_slot})
  call void @Py_IncRef(ptr %place)
  call void @put(ptr %node, i64 %place.slot, ptr %place)
  %links = call ptr @word(ptr %h, i64 ${H_links})
  br label %next
next:
  %k = phi i64 [ 0, %link ], [ %k1, %passed ]
  %end = icmp eq i64 %k, %shown
  br i1 %end, label %watch, label %one
one:
  %slot = call i64 @number(ptr %links, i64 %k)
  %linked = icmp ne i64 %slot, 0
  br i1 %linked, label %tie, label %passed
tie:
  %result = call ptr @word(ptr %made, i64 %k)
  call void @Py_IncRef(ptr %node)
  call void @put(ptr %result, i64 %slot, ptr %node)
  br label %passed
passed:
  %k1 = add i64 %k, 1
  br label %next
watch:
  %well = call i1 @reads_later(ptr %h, ptr %node, ptr %made, i64 %shown)
  call void @Py_DecRef(ptr %node)
  ret i1 %well
drop:
  call void @Py_DecRef(ptr %node)
  ret i1 false
}

; Whether the attributes of a thread's state are these very objects: a thread, its state's dict and
; the version that it had when they were; the state, the name of its dict, a count, names and
; objects. Versions are never given twice, so what was seen of one needs no second look.
define internal i1 @same_modes(ptr %modes) {
entry:
  %thread = call ptr @PyThreadState_Get()
  %id = call i64 @PyThreadState_GetID(ptr %thread)
  %known = call i64 @number(ptr %modes, i64 0)
  %here = icmp eq i64 %id, %known
  br i1 %here, label %compare, label %look
compare:
  %dict = call ptr @word(ptr %modes, i64 1)
  %version = call i64 @number(ptr %modes, i64 2)
  %now = call ptr @field(ptr %dict, i64 ${DICT_VERSION})
  %now.word = ptrtoint ptr %now to i64
  %same = icmp eq i64 %now.word, %version
  br i1 %same, label %yes, label %look
look:
  %state = call ptr @word(ptr %modes, i64 3)
  %dict.name = call ptr @word(ptr %modes, i64 4)
  %count = call i64 @number(ptr %modes, i64 5)
  %fresh = call ptr @PyObject_GetAttr(ptr %state, ptr %dict.name)
  %failed = icmp eq ptr %fresh, null
  br i1 %failed, label %error, label %start
start:
  %first = call ptr @field(ptr %fresh, i64 ${DICT_VERSION})
  %pairs = getelementptr i64, ptr %modes, i64 6
  br label %next
next:
  %k = phi i64 [ 0, %start ], [ %k1, %got ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %keep, label %one
one:
  %name.p = getelementptr [2 x i64], ptr %pairs, i64 %k, i32 0
  %value.p = getelementptr [2 x i64], ptr %pairs, i64 %k, i32 1
  %name = load ptr, ptr %name.p
  %value = load ptr, ptr %value.p
  %found = call ptr @PyObject_GetAttr(ptr %state, ptr %name)
  %missing = icmp eq ptr %found, null
  br i1 %missing, label %unlike, label %got
got:
  call void @Py_DecRef(ptr %found)
  %k1 = add i64 %k, 1
  %alike = icmp eq ptr %found, %value
  br i1 %alike, label %next, label %unlike
keep:
  %before = call ptr @word(ptr %modes, i64 1)
  %dict.p = getelementptr ptr, ptr %modes, i64 1
  %version.p = getelementptr ptr, ptr %modes, i64 2
  store i64 %id, ptr %modes
  store ptr %fresh, ptr %dict.p
  store ptr %first, ptr %version.p
  %none = icmp eq ptr %before, null
  br i1 %none, label %yes, label %let.go
let.go:
  call void @Py_DecRef(ptr %before)
  br label %yes
unlike:
  call void @Py_DecRef(ptr %fresh)
  br label %error
error:
  call void @PyErr_Clear()
  ret i1 false
yes:
  ret i1 true
}
