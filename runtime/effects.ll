; What a bound call does beside running and making results: numbers are read again where they
; changed, random states kept, writes counted, gradients set, spent history given, and the answer
; put together. After fastcall.ll. Words in braces that begin with E_ are places in the list of
; effects.py, which says what is there.
;
; Invariants
; - All of it is what the Python of `api/finishing.py` does, in that order.
; - What may run other Python (new numbers, a storage that is not there yet) is called by name.

; Are numbers in native memory as they are in Python (now)? 1 or 0, -1 on an error.
define internal i32 @are_current(ptr %words, ptr %renew) {
entry:
  %same = call i1 @unchanged(ptr %words)
  br i1 %same, label %yes, label %ask
ask:
  %answer = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %renew, ptr null)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %error, label %look
look:
  call void @Py_DecRef(ptr %answer)
  %is = icmp eq ptr %answer, @True
  %found = zext i1 %is to i32
  ret i32 %found
yes:
  ret i32 1
error:
  ret i32 -1
}

; Whether so many blocks of 64 bytes are the same. No way out in between: that takes longer.
define internal i1 @same_blocks(ptr %a, ptr %b, i64 %count) {
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %one ]
  %unlike = phi <8 x i64> [ zeroinitializer, %entry ], [ %unlike.now, %one ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %out, label %one
one:
  %a.p = getelementptr <8 x i64>, ptr %a, i64 %k
  %b.p = getelementptr <8 x i64>, ptr %b, i64 %k
  %a.k = load <8 x i64>, ptr %a.p, align 4
  %b.k = load <8 x i64>, ptr %b.p, align 4
  %different = xor <8 x i64> %a.k, %b.k
  %unlike.now = or <8 x i64> %unlike, %different
  %k1 = add i64 %k, 1
  br label %next
out:
  %any = call i64 @llvm.vector.reduce.or.v8i64(<8 x i64> %unlike)
  %same = icmp eq i64 %any, 0
  ret i1 %same
}
declare i64 @llvm.vector.reduce.or.v8i64(<8 x i64>)

; A copy of the memory of a generator, but for the position at its end. The last one, which is the
; k-th in a list, will do until the engine makes its next words. Null on an error.
define internal ptr @engine_words(ptr %memory, i64 %size, ptr %last, i64 %k) {
entry:
  %from = call ptr @field(ptr %memory, i64 ${DATA})
  %items = call ptr @field(ptr %last, i64 ${TUPLE_ITEMS})
  %known = call ptr @word(ptr %items, i64 %k)
  %none = icmp eq ptr %known, @None
  br i1 %none, label %copy, label %compare
compare:
  %known.data = call ptr @field(ptr %known, i64 ${DATA})
  %blocks = lshr i64 %size, 6                   ; what is left is the position
  %same = call i1 @same_blocks(ptr %from, ptr %known.data, i64 %blocks)
  br i1 %same, label %take, label %copy
take:
  call void @Py_IncRef(ptr %known)
  ret ptr %known
copy:
  %descr = call ptr @field(ptr %memory, i64 ${DESCR})
  %dims = call ptr @field(ptr %memory, i64 ${DIMS})
  call void @Py_IncRef(ptr %descr)         ; which the next call takes over
  %new = call ptr @PyArray_NewFromDescr(ptr @ndarray, ptr %descr, i32 1, ptr %dims, ptr null,
                                        ptr null, i32 0, ptr null)
  %poor = icmp eq ptr %new, null
  br i1 %poor, label %no, label %fill
fill:
  %to = call ptr @field(ptr %new, i64 ${DATA})
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  call void @Py_IncRef(ptr %new)
  %r = call i32 @PyList_SetItem(ptr %last, i64 %k, ptr %new)
  ret ptr %new
no:
  ret ptr null
}

; The state of a generator: a tuple of a class with a copy of its memory, the position there, and
; what is in some of its slots; null on an error. `list`: that class, how many bytes of memory, how
; many slots, their offsets, the memory's first.
define internal ptr @snapshot(ptr %list, ptr %generator, ptr %slowly, ptr %last, i64 %which) {
entry:
  %class = call ptr @word(ptr %list, i64 0)
  %size = call i64 @number(ptr %list, i64 1)
  %count = call i64 @number(ptr %list, i64 2)
  %slots = getelementptr i64, ptr %list, i64 3
  %first = load i64, ptr %slots
  %memory = call ptr @field(ptr %generator, i64 %first)
  %unset = icmp eq ptr %memory, null
  %unknown = icmp eq ptr %memory, @None
  %strange = or i1 %unset, %unknown
  br i1 %strange, label %ask, label %look
ask:
  %asked = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %slowly, ptr null)
  ret ptr %asked
look:
  %words = call ptr @engine_words(ptr %memory, i64 %size, ptr %last, i64 %which)
  %data = call ptr @field(ptr %memory, i64 ${DATA})
  %end.p = getelementptr i8, ptr %data, i64 %size
  %at.p = getelementptr i32, ptr %end.p, i64 -1
  %at = load i32, ptr %at.p
  %wide = zext i32 %at to i64
  %position = call ptr @PyLong_FromLongLong(i64 %wide)
  %wordless = icmp eq ptr %words, null
  %placeless = icmp eq ptr %position, null
  %poor = or i1 %wordless, %placeless
  br i1 %poor, label %drop, label %new
new:
  %items = add i64 %count, 1
  %state = call ptr @PyType_GenericAlloc(ptr %class, i64 %items)
  %failed = icmp eq ptr %state, null
  br i1 %failed, label %drop, label %fill
drop:
  call void @let_go(ptr %words)
  call void @let_go(ptr %position)
  ret ptr null
fill:
  %second = add i64 ${TUPLE_ITEMS}, 8
  call void @put(ptr %state, i64 ${TUPLE_ITEMS}, ptr %words)
  call void @put(ptr %state, i64 %second, ptr %position)
  br label %next
next:
  %k = phi i64 [ 1, %fill ], [ %k1, %one ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %yes, label %one
one:
  %slot = call i64 @number(ptr %slots, i64 %k)
  %value = call ptr @field(ptr %generator, i64 %slot)
  call void @Py_IncRef(ptr %value)
  %k1 = add i64 %k, 1
  %by = mul i64 %k1, 8
  %to = add i64 %by, ${TUPLE_ITEMS}
  call void @put(ptr %state, i64 %to, ptr %value)
  br label %next
yes:
  ret ptr %state
}

; The states of all generators that are drawn from, in a tuple: null on an error. What `snapshot`
; needs to know, a count, a list of the copies made last, and each generator beside the method that
; gives its state slowly.
define internal ptr @snapshots(ptr %list) {
entry:
  %how = call ptr @word(ptr %list, i64 0)
  %count = call i64 @number(ptr %list, i64 1)
  %last = call ptr @word(ptr %list, i64 2)
  %pairs = getelementptr i64, ptr %list, i64 3
  %found = alloca ptr, i64 %count, align 16
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %kept ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %all, label %one
one:
  %generator.p = getelementptr [2 x i64], ptr %pairs, i64 %k, i32 0
  %slowly.p = getelementptr [2 x i64], ptr %pairs, i64 %k, i32 1
  %generator = load ptr, ptr %generator.p
  %slowly = load ptr, ptr %slowly.p
  %state = call ptr @snapshot(ptr %how, ptr %generator, ptr %slowly, ptr %last, i64 %k)
  %failed = icmp eq ptr %state, null
  br i1 %failed, label %drop, label %kept
kept:
  %found.p = getelementptr ptr, ptr %found, i64 %k
  store ptr %state, ptr %found.p
  %k1 = add i64 %k, 1
  br label %next
all:
  %tuple = call ptr @tuple_of(ptr %found, i64 %count)
  ret ptr %tuple
drop:
  call void @release(ptr %found, i64 %k)
  ret ptr null
}

; The storage of an argument that was written, made if there is none; borrowed, null on an error.
define internal ptr @storage(ptr %e, ptr %tensor) {
entry:
  %slot = call i64 @number(ptr %e, i64 ${E_storage})
  %known = call ptr @field(ptr %tensor, i64 %slot)
  %none = icmp eq ptr %known, @None
  br i1 %none, label %ask, label %yes
yes:
  ret ptr %known
ask:
  %make = call ptr @word(ptr %e, i64 ${E_make_storage})
  %made = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %make, ptr %tensor, ptr null)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %no, label %got
got:
  call void @Py_DecRef(ptr %made)                ; the tensor has it
  ret ptr %made
no:
  ret ptr null
}

; A version that only its storage holds is counted up where it is: nobody can see that it is the same
; object. False where others hold it, or it is no int of one digit, or would not be.
define internal i1 @count_in_place(ptr %version, i64 %times) alwaysinline {
entry:
  %references = load i64, ptr %version
  %alone = icmp eq i64 %references, 1
  %is.int = call i1 @has_type(ptr %version, ptr @int)
  %size.p = getelementptr i8, ptr %version, i64 ${INT_SIZE}
  %size = load i64, ptr %size.p
  %short = icmp eq i64 %size, ${ONE_DIGIT}
  %two = and i1 %alone, %is.int
  %three = and i1 %two, %short
  br i1 %three, label %count, label %no
count:
  %digit.p = getelementptr i8, ptr %version, i64 ${INT_DIGIT}
  %digit = load i32, ptr %digit.p
  %wide = zext i32 %digit to i64
  %sum = add i64 %wide, %times
  %fits = icmp ult i64 %sum, ${MOST_DIGIT}
  br i1 %fits, label %store, label %no
store:
  %new = trunc i64 %sum to i32
  store i32 %new, ptr %digit.p
  ret i1 true
no:
  ret i1 false
}

; Counts writes: triples of an argument or -1, a storage, and how many.
define internal i1 @count_writes(ptr %e, ptr %args, ptr %place) {
entry:
  %count = call i64 @number(ptr %e, i64 ${E_write_count})
  %list = call ptr @word(ptr %e, i64 ${E_writes})
  %version.slot = call i64 @number(ptr %e, i64 ${E_version})
  %written.slot = call i64 @number(ptr %e, i64 ${E_written})
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %where ], [ %k1, %move ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %yes, label %one
one:
  %at.p = getelementptr [3 x i64], ptr %list, i64 %k, i32 0
  %known.p = getelementptr [3 x i64], ptr %list, i64 %k, i32 1
  %times.p = getelementptr [3 x i64], ptr %list, i64 %k, i32 2
  %at = load i64, ptr %at.p
  %known = load ptr, ptr %known.p
  %times = load i64, ptr %times.p
  %given = icmp sge i64 %at, 0
  br i1 %given, label %argument, label %add
argument:
  %tensor = call ptr @word(ptr %args, i64 %at)
  %own = call ptr @storage(ptr %e, ptr %tensor)
  %failed = icmp eq ptr %own, null
  br i1 %failed, label %no, label %add
add:
  %storage = phi ptr [ %known, %one ], [ %own, %argument ]
  %k1 = add i64 %k, 1
  %before = call ptr @field(ptr %storage, i64 %version.slot)
  %counted = call i1 @count_in_place(ptr %before, i64 %times)
  br i1 %counted, label %where, label %new
new:
  %number = call i64 @PyLong_AsLongLong(ptr %before)
  %sum = add i64 %number, %times
  %version = call ptr @PyLong_FromLongLong(i64 %sum)
  %poor = icmp eq ptr %version, null
  br i1 %poor, label %no, label %keep
keep:
  call void @replace(ptr %storage, i64 %version.slot, ptr %version)
  br label %where
where:
  %last = call ptr @field(ptr %storage, i64 %written.slot)
  %there = icmp eq ptr %last, %place
  br i1 %there, label %next, label %move
move:
  call void @Py_IncRef(ptr %place)
  call void @replace(ptr %storage, i64 %written.slot, ptr %place)
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; Gives storages to results that were written: pairs of one of what was made, and slots.
define internal i1 @give_storages(ptr %e, ptr %made) {
entry:
  %count = call i64 @number(ptr %e, i64 ${E_version_count})
  %list = call ptr @word(ptr %e, i64 ${E_versions})
  %class = call ptr @word(ptr %e, i64 ${E_storage_class})
  %root.slot = call i64 @number(ptr %e, i64 ${E_root})
  %array.slot = call i64 @number(ptr %e, i64 ${E_array})
  %storage.slot = call i64 @number(ptr %e, i64 ${E_storage})
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %give ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %yes, label %one
one:
  %at.p = getelementptr [2 x i64], ptr %list, i64 %k, i32 0
  %slots.p = getelementptr [2 x i64], ptr %list, i64 %k, i32 1
  %at = load i64, ptr %at.p
  %slots = load ptr, ptr %slots.p
  %storage = call ptr @new_object(ptr %class, ptr %slots)
  %failed = icmp eq ptr %storage, null
  br i1 %failed, label %no, label %give
give:
  %result = call ptr @word(ptr %made, i64 %at)
  %array = call ptr @field(ptr %result, i64 %array.slot)
  call void @Py_IncRef(ptr %array)
  call void @put(ptr %storage, i64 %root.slot, ptr %array)
  call void @replace(ptr %result, i64 %storage.slot, ptr %storage)
  %k1 = add i64 %k, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; Sets `.grad`: pairs of a tensor, and what was made, or -1 for None.
define internal void @set_gradients(ptr %e, ptr %made) {
entry:
  %count = call i64 @number(ptr %e, i64 ${E_gradient_count})
  %list = call ptr @word(ptr %e, i64 ${E_gradients})
  %slot = call i64 @number(ptr %e, i64 ${E_gradient})
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %set ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %out, label %one
one:
  %owner.p = getelementptr [2 x i64], ptr %list, i64 %k, i32 0
  %at.p = getelementptr [2 x i64], ptr %list, i64 %k, i32 1
  %owner = load ptr, ptr %owner.p
  %at = load i64, ptr %at.p
  %k1 = add i64 %k, 1
  %none = icmp slt i64 %at, 0
  br i1 %none, label %set, label %some
some:
  %found = call ptr @word(ptr %made, i64 %at)
  br label %set
set:
  %value = phi ptr [ @None, %one ], [ %found, %some ]
  call void @Py_IncRef(ptr %value)
  call void @replace(ptr %owner, i64 %slot, ptr %value)
  br label %next
out:
  ret void
}

; A tuple of so many arguments, at the places in a list; null on an error.
define internal ptr @some_of(ptr %args, ptr %places, i64 %count) {
entry:
  %tuple = call ptr @PyTuple_New(i64 %count)
  %failed = icmp eq ptr %tuple, null
  br i1 %failed, label %out, label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %put ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %out, label %put
put:
  %at = call i64 @number(ptr %places, i64 %k)
  %object = call ptr @word(ptr %args, i64 %at)
  call void @Py_IncRef(ptr %object)
  %items = getelementptr i8, ptr %tuple, i64 ${TUPLE_ITEMS}
  %to = getelementptr ptr, ptr %items, i64 %k
  store ptr %object, ptr %to
  %k1 = add i64 %k, 1
  br label %next
out:
  ret ptr %tuple
}

; Of a result whose backward was run inside: where it is among what was made, the slots of its node,
; how many arguments this is given, where these are
%Spent = type { i64, ptr, i64, ptr }

; Gives nodes to such results.
define internal i1 @give_spent(ptr %e, ptr %args, ptr %made, ptr %place) {
entry:
  %count = call i64 @number(ptr %e, i64 ${E_spent_count})
  %list = call ptr @word(ptr %e, i64 ${E_spent})
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %give ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %yes, label %one
one:
  %class = call ptr @word(ptr %e, i64 ${E_class})
  %at.p = getelementptr %Spent, ptr %list, i64 %k, i32 0
  %slots.p = getelementptr %Spent, ptr %list, i64 %k, i32 1
  %given.p = getelementptr %Spent, ptr %list, i64 %k, i32 2
  %places.p = getelementptr %Spent, ptr %list, i64 %k, i32 3
  %at = load i64, ptr %at.p
  %slots = load ptr, ptr %slots.p
  %given = load i64, ptr %given.p
  %places = load ptr, ptr %places.p
  %node = call ptr @new_object(ptr %class, ptr %slots)
  %failed = icmp eq ptr %node, null
  br i1 %failed, label %no, label %known
known:
  %all = icmp eq i64 %given, 0
  br i1 %all, label %fill, label %take
take:
  %taken = call ptr @some_of(ptr %args, ptr %places, i64 %given)
  %given.slot = call i64 @number(ptr %e, i64 ${E_given_slot})
  call void @put(ptr %node, i64 %given.slot, ptr %taken)
  %untaken = icmp eq ptr %taken, null
  br i1 %untaken, label %drop, label %fill
fill:
  %counter = call ptr @word(ptr %e, i64 ${E_counter})
  %sequence = call ptr @PyIter_Next(ptr %counter)
  %sequence.slot = call i64 @number(ptr %e, i64 ${E_sequence_slot})
  call void @put(ptr %node, i64 %sequence.slot, ptr %sequence)
  %place.slot = call i64 @number(ptr %e, i64 ${E_place_slot})
  call void @Py_IncRef(ptr %place)
  call void @put(ptr %node, i64 %place.slot, ptr %place)
  %uncounted = icmp eq ptr %sequence, null
  br i1 %uncounted, label %drop, label %give
drop:
  call void @Py_DecRef(ptr %node)
  ret i1 false
give:
  %result = call ptr @word(ptr %made, i64 %at)
  %slot = call i64 @number(ptr %e, i64 ${E_node})
  call void @put(ptr %result, i64 %slot, ptr %node)
  %k1 = add i64 %k, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; A list of objects whose references it takes over.
define internal ptr @list_of(ptr %objects, i64 %count) {
entry:
  %list = call ptr @PyList_New(i64 %count)
  %failed = icmp eq ptr %list, null
  br i1 %failed, label %no, label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %put ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %yes, label %put
put:
  %object = call ptr @word(ptr %objects, i64 %k)
  %r = call i32 @PyList_SetItem(ptr %list, i64 %k, ptr %object)
  %k1 = add i64 %k, 1
  br label %next
yes:
  ret ptr %list
no:
  call void @release(ptr %objects, i64 %count)
  ret ptr null
}

; A new dict or object, which may be null: an error, with objects at these keys or names; it takes
; over the references to them.
define internal ptr @filled(ptr %new, ptr %objects, i64 %count, ptr %keys, ptr %set) {
entry:
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %out, label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %put ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %out, label %put
put:
  %key = call ptr @word(ptr %keys, i64 %k)
  %object = call ptr @word(ptr %objects, i64 %k)
  %r = call i32 %set(ptr %new, ptr %key, ptr %object)
  %k1 = add i64 %k, 1
  %well = icmp eq i32 %r, 0
  br i1 %well, label %next, label %drop
drop:
  call void @Py_DecRef(ptr %new)
  br label %out
out:
  %found = phi ptr [ null, %entry ], [ %new, %next ], [ null, %drop ]
  call void @release(ptr %objects, i64 %count)
  ret ptr %found
}

; Puts the answer together: how deep the stack gets, how many nodes are shared among views, how many
; steps, and steps of three words each: push something, or make one of what was pushed last. Null on
; an error.
define internal ptr @assemble(ptr %list, ptr %args, ptr %made, ptr %place) {
entry:
  %shared.count = call i64 @number(ptr %list, i64 1)
  %shared = alloca ptr, i64 %shared.count, align 16
  br label %clear
clear:
  %c = phi i64 [ 0, %entry ], [ %c1, %null ]
  %cleared = icmp eq i64 %c, %shared.count
  br i1 %cleared, label %go, label %null
null:
  %shared.p = getelementptr ptr, ptr %shared, i64 %c
  store ptr null, ptr %shared.p
  %c1 = add i64 %c, 1
  br label %clear
go:
  %whole = call ptr @assemble_sharing(ptr %list, ptr %args, ptr %made, ptr %place, ptr %shared)
  br label %again
again:
  %d = phi i64 [ 0, %go ], [ %d1, %drop ]
  %dropped = icmp eq i64 %d, %shared.count
  br i1 %dropped, label %out, label %drop
drop:
  %node = call ptr @word(ptr %shared, i64 %d)
  call void @let_go(ptr %node)
  %d1 = add i64 %d, 1
  br label %again
out:
  ret ptr %whole
}

define internal ptr @assemble_sharing(ptr %list, ptr %args, ptr %made, ptr %place, ptr %shared) {
entry:
  %depth = call i64 @number(ptr %list, i64 0)
  %count = call i64 @number(ptr %list, i64 2)
  %steps = getelementptr i64, ptr %list, i64 3
  %stack = alloca ptr, i64 %depth, align 16
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %push ]
  %top = phi i64 [ 0, %entry ], [ %top1, %push ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %out, label %one
one:
  %kind.p = getelementptr [3 x i64], ptr %steps, i64 %k, i32 0
  %a.p = getelementptr [3 x i64], ptr %steps, i64 %k, i32 1
  %b.p = getelementptr [3 x i64], ptr %steps, i64 %k, i32 2
  %kind = load i64, ptr %kind.p
  %a = load i64, ptr %a.p
  %b = load ptr, ptr %b.p
  %below = sub i64 %top, %a
  %last = getelementptr ptr, ptr %stack, i64 %below
  switch i64 %kind, label %constant [ i64 ${A_MADE}, label %result
                                      i64 ${AN_ARGUMENT}, label %argument
                                      i64 ${A_VIEW}, label %view
                                      i64 ${A_TUPLE}, label %tuple
                                      i64 ${A_LIST}, label %items
                                      i64 ${A_DICT}, label %entries
                                      i64 ${AN_OBJECT_OF}, label %fields
                                      i64 ${AN_ANSWER}, label %ask ]
result:
  %result.k = call ptr @word(ptr %made, i64 %a)
  br label %hold
argument:
  %argument.k = call ptr @word(ptr %args, i64 %a)
  br label %hold
constant:
  br label %hold
hold:
  %held = phi ptr [ %result.k, %result ], [ %argument.k, %argument ], [ %b, %constant ]
  call void @Py_IncRef(ptr %held)
  br label %push
view:
  %base = load ptr, ptr %last
  %a.view = call ptr @view_of(ptr %b, ptr %base, ptr %shared, ptr %place)
  call void @Py_DecRef(ptr %base)
  br label %make
tuple:
  %a.tuple = call ptr @tuple_of(ptr %last, i64 %a)
  br label %make
items:
  %a.list = call ptr @list_of(ptr %last, i64 %a)
  br label %make
entries:
  %new.dict = call ptr @PyDict_New()
  %a.dict = call ptr @filled(ptr %new.dict, ptr %last, i64 %a, ptr %b, ptr @PyDict_SetItem)
  br label %make
fields:
  %allocate = call ptr @word(ptr %b, i64 0)
  %class = call ptr @word(ptr %b, i64 1)
  %names = getelementptr ptr, ptr %b, i64 2
  %new.object = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %allocate, ptr %class,
                                                                  ptr null)
  %an.object = call ptr @filled(ptr %new.object, ptr %last, i64 %a, ptr %names,
                                ptr @PyObject_GenericSetAttr)
  br label %make
ask:
  %given = call ptr @tuple_of(ptr %last, i64 %a)
  %lost = icmp eq ptr %given, null
  br i1 %lost, label %error, label %call
call:
  %answer = call ptr @PyObject_CallObject(ptr %b, ptr %given)
  call void @Py_DecRef(ptr %given)
  br label %make
make:
  %new = phi ptr [ %a.tuple, %tuple ], [ %a.list, %items ], [ %a.dict, %entries ],
                 [ %an.object, %fields ], [ %a.view, %view ], [ %answer, %call ]
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %error, label %push
push:
  %at = phi i64 [ %top, %hold ], [ %below, %make ]
  %object = phi ptr [ %held, %hold ], [ %new, %make ]
  %to = getelementptr ptr, ptr %stack, i64 %at
  store ptr %object, ptr %to
  %top1 = add i64 %at, 1
  %k1 = add i64 %k, 1
  br label %next
out:
  %whole = load ptr, ptr %stack
  ret ptr %whole
error:
  call void @release(ptr %stack, i64 %below)
  ret ptr null
}
