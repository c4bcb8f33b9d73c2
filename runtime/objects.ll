; Reading and holding Python objects from native code: before all that fastcall.py compiles.
; Words after a dollar are offsets from layout.py.

${REFERENCES}
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyErr_NoMemory()
declare ptr @PyTuple_New(i64)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyObject_CallObject(ptr, ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @PyArray_NewCopy(ptr, i32)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyDict_GetItem(ptr, ptr)
declare ptr @PyFrame_GetCode(ptr)
declare ptr @PyFrame_GetBack(ptr)
declare ptr @PyIter_Next(ptr)
declare ptr @PyWeakref_NewRef(ptr, ptr)
declare ptr @PyWeakref_GetObject(ptr)
declare i32 @PySet_Add(ptr, ptr)
declare i32 @PyDict_Contains(ptr, ptr)
declare ptr @PyLong_FromVoidPtr(ptr)
declare ptr @PyThreadState_Get()
declare ptr @PyThreadState_GetFrame(ptr)
declare i64 @PyThreadState_GetID(ptr)
declare void @PyErr_Clear()
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare ptr @PyDict_New()
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare ptr @PyObject_GenericGetDict(ptr, ptr)
declare i32 @PyObject_GenericSetAttr(ptr, ptr, ptr)
declare ptr @PyObject_VectorcallDict(ptr, ptr, i64, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i32 @PyObject_IsTrue(ptr)
declare i32 @PySet_Discard(ptr, ptr)
declare i64 @PyLong_AsLongLong(ptr)
@None = external global i8
@True = external global i8
@False = external global i8
@NotImplemented = external global i8
@ndarray = external global i8
@tuple = external global i8
@reference = external global i8            ; `weakref.ref`
@bool = external global i8                 ; NumPy's dtype
@int = external global i8
@function = external global i8             ; the class of built-in functions

; What an argument or a result must be
%Record = type { ptr, i64, i64, ptr, i32, i32, ptr, ptr, i64, i64, i64, ptr, i64, ptr }
; 0 type  1 slot  2 kind: an array, one to copy, a float, or what must be the same  3 descr, or the object  4 flags  5 nd  6 dims  7 strides  8 alignment-1
; 9 and 10: the first byte and the byte after the last, from the data pointer
; 11 facts of the holder or number, or null: a count, and as many offsets and what must be there
; 12 where the entry wants the pointer, among all pointers; negative if it does not
; 13 where two arrays that may be used again are (spares.ll), or null

; Followed by a %Record for each argument, then for each result
%Table = type { i64, i64, ptr, i64, ptr, i64, ptr, i64, ptr, i64, ptr, ptr, i64, ptr, ptr, ptr, ptr,
                ptr, ptr, i64, ptr, ptr, ptr, ptr, ptr, ptr, ptr }
; 0 arguments  1 results  2 entry  3 flags  4 arena  5 arena's size  6 slow  7 pairs  8 their list
; 9 how many pointers the entry takes  10 those that are always the same: a count, places, pointers
; 11 memory that must be as listed  12 and 13 objects to hold while the GIL is released
; 14 the history that results get, or null  15 modes of the thread that must be so, or null
; 16 a counter of calls that ran, or null  17 the answer where there is no slow path
; 18 what is given the status, or null  19 how many of the results are shown: the rest is saved
; 20 how arguments are taken apart (entering.ll), or null  21 words that tell that numbers are up to date, or null  22 what
; makes them so  23 effects, or null  24 how to find the user's place, or null  25 how the answer is
; put together, or null  26 the random states that the history gets, or null

define internal ptr @field(ptr %object, i64 %offset) alwaysinline {
  %at = getelementptr i8, ptr %object, i64 %offset
  %value = load ptr, ptr %at
  ret ptr %value
}

define internal ptr @word(ptr %list, i64 %k) alwaysinline {
  %p = getelementptr ptr, ptr %list, i64 %k
  %value = load ptr, ptr %p
  ret ptr %value
}

define internal i64 @number(ptr %list, i64 %k) alwaysinline {
  %p = getelementptr i64, ptr %list, i64 %k
  %value = load i64, ptr %p
  ret i64 %value
}

; Puts a reference into a slot that holds none.
define internal void @put(ptr %object, i64 %offset, ptr %value) alwaysinline {
  %at = getelementptr i8, ptr %object, i64 %offset
  store ptr %value, ptr %at
  ret void
}

; Puts a reference in place of another, which is let go.
define internal void @replace(ptr %object, i64 %offset, ptr %value) {
  %at = getelementptr i8, ptr %object, i64 %offset
  %before = load ptr, ptr %at
  store ptr %value, ptr %at
  call void @Py_DecRef(ptr %before)
  ret void
}

define internal ptr @item(ptr %tuple, i64 %k) alwaysinline {
  %items = getelementptr i8, ptr %tuple, i64 ${TUPLE_ITEMS}
  %item = call ptr @word(ptr %items, i64 %k)
  ret ptr %item
}

define internal i1 @has_type(ptr %object, ptr %class) alwaysinline {
  %type = call ptr @field(ptr %object, i64 ${TYPE})
  %is = icmp eq ptr %type, %class
  ret i1 %is
}

; Calls a callable: a built-in function that takes an array of arguments without Python between.
define internal ptr @invoke(ptr %callable, ptr %args, i64 %nargs) {
entry:
  %built.in = call i1 @has_type(ptr %callable, ptr @function)
  br i1 %built.in, label %look, label %general
look:
  %method = call ptr @field(ptr %callable, i64 ${METHOD})
  %flags.p = getelementptr i8, ptr %method, i64 ${METHOD_FLAGS}
  %flags = load i32, ptr %flags.p
  %fast = icmp eq i32 %flags, ${METH_FASTCALL}
  br i1 %fast, label %direct, label %general
direct:
  %self = call ptr @field(ptr %callable, i64 ${METHOD_SELF})
  %function = call ptr @field(ptr %method, i64 ${METHOD_FUNCTION})
  %answer = call ptr %function(ptr %self, ptr %args, i64 %nargs)
  ret ptr %answer
general:
  %asked = call ptr @PyObject_VectorcallDict(ptr %callable, ptr %args, i64 %nargs, ptr null)
  ret ptr %asked
}

; Lets go of what may be nothing.
define internal void @let_go(ptr %object) alwaysinline {
entry:
  %nothing = icmp eq ptr %object, null
  br i1 %nothing, label %out, label %drop
drop:
  call void @Py_DecRef(ptr %object)
  br label %out
out:
  ret void
}

define internal i1 @same_words(ptr %a, ptr %b, i64 %count) alwaysinline {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %compare ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %equal, label %compare
compare:
  %pa = getelementptr i64, ptr %a, i64 %i
  %pb = getelementptr i64, ptr %b, i64 %i
  %va = load i64, ptr %pa
  %vb = load i64, ptr %pb
  %i1 = add i64 %i, 1
  %same = icmp eq i64 %va, %vb
  br i1 %same, label %next, label %different
equal:
  ret i1 true
different:
  ret i1 false
}

; Whether memory is as listed: a count, then pairs of an offset from `base` and a word. Pairs are
; looked at in order, and not beyond one that differs: a later address may be stale then. Where the
; complement of an offset is given, another word must be there.
define internal i1 @as_listed(ptr %list, ptr %base) {
entry:
  %none = icmp eq ptr %list, null
  br i1 %none, label %yes, label %start
start:
  %count = load i64, ptr %list
  %pairs = getelementptr i64, ptr %list, i64 1
  br label %next
next:
  %i = phi i64 [ 0, %start ], [ %i1, %look ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %yes, label %look
look:
  %offset.p = getelementptr [2 x i64], ptr %pairs, i64 %i, i32 0
  %word.p = getelementptr [2 x i64], ptr %pairs, i64 %i, i32 1
  %offset = load i64, ptr %offset.p
  %word = load i64, ptr %word.p
  %sign = ashr i64 %offset, 63
  %place = xor i64 %offset, %sign
  %at = getelementptr i8, ptr %base, i64 %place
  %now = load i64, ptr %at, align 4
  %i1 = add i64 %i, 1
  %same = icmp eq i64 %now, %word
  %unlike = icmp slt i64 %offset, 0
  %well = xor i1 %same, %unlike
  br i1 %well, label %next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; The same for addresses, none of which is complemented: training steps have hundreds.
define internal i1 @unchanged(ptr %list) {
entry:
  %none = icmp eq ptr %list, null
  br i1 %none, label %yes, label %start
start:
  %count = load i64, ptr %list
  %first = getelementptr i64, ptr %list, i64 1
  %last = getelementptr [2 x i64], ptr %first, i64 %count
  br label %next
next:
  %pair = phi ptr [ %first, %start ], [ %following, %look ]
  %end = icmp eq ptr %pair, %last
  br i1 %end, label %yes, label %look
look:
  %word.p = getelementptr i64, ptr %pair, i64 1
  %at = load ptr, ptr %pair
  %word = load i64, ptr %word.p
  %now = load i64, ptr %at, align 4
  %following = getelementptr i64, ptr %pair, i64 2
  %same = icmp eq i64 %now, %word
  br i1 %same, label %next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; The array in a holder, or the object itself; null if it is not what the record wants.
define internal ptr @unwrap(ptr %record, ptr %object) alwaysinline {
entry:
  %want.p = getelementptr %Record, ptr %record, i32 0, i32 0
  %want = load ptr, ptr %want.p
  %type = call ptr @field(ptr %object, i64 ${TYPE})
  %right = icmp eq ptr %type, %want
  br i1 %right, label %typed, label %no
typed:
  %slot.p = getelementptr %Record, ptr %record, i32 0, i32 1
  %slot = load i64, ptr %slot.p
  %direct = icmp eq i64 %slot, 0
  br i1 %direct, label %yes, label %held
yes:
  ret ptr %object
held:
  %facts.p = getelementptr %Record, ptr %record, i32 0, i32 11
  %facts = load ptr, ptr %facts.p
  %as.known = call i1 @as_listed(ptr %facts, ptr %object)
  br i1 %as.known, label %known, label %no
known:
  %inner = call ptr @field(ptr %object, i64 %slot)
  %unset = icmp eq ptr %inner, null
  br i1 %unset, label %no, label %look
look:
  %inner.type = call ptr @field(ptr %inner, i64 ${TYPE})
  %array = icmp eq ptr %inner.type, @ndarray
  br i1 %array, label %found, label %no
found:
  ret ptr %inner
no:
  ret ptr null
}

; The data of an array that is as the record says; null if it is not.
define internal ptr @data_of(ptr %record, ptr %array) alwaysinline {
entry:
  %descr.p = getelementptr %Record, ptr %record, i32 0, i32 3
  %descr.want = load ptr, ptr %descr.p
  %descr = call ptr @field(ptr %array, i64 ${DESCR})
  %descr.ok = icmp eq ptr %descr, %descr.want
  %flags.p = getelementptr %Record, ptr %record, i32 0, i32 4
  %flags.want = load i32, ptr %flags.p
  %flags.at = getelementptr i8, ptr %array, i64 ${FLAGS}
  %flags = load i32, ptr %flags.at
  %flags.set = and i32 %flags, %flags.want
  %flags.ok = icmp eq i32 %flags.set, %flags.want
  %nd.p = getelementptr %Record, ptr %record, i32 0, i32 5
  %nd.want = load i32, ptr %nd.p
  %nd.at = getelementptr i8, ptr %array, i64 ${ND}
  %nd = load i32, ptr %nd.at
  %nd.ok = icmp eq i32 %nd, %nd.want
  %data = call ptr @field(ptr %array, i64 ${DATA})
  %address = ptrtoint ptr %data to i64
  %align.p = getelementptr %Record, ptr %record, i32 0, i32 8
  %align = load i64, ptr %align.p
  %astray = and i64 %address, %align
  %align.ok = icmp eq i64 %astray, 0
  %both = and i1 %descr.ok, %flags.ok
  %three = and i1 %both, %nd.ok
  %four = and i1 %three, %align.ok
  br i1 %four, label %shape, label %no
shape:
  %rank = zext i32 %nd to i64
  %dims.p = getelementptr %Record, ptr %record, i32 0, i32 6
  %dims.want = load ptr, ptr %dims.p
  %dims = call ptr @field(ptr %array, i64 ${DIMS})
  %dims.ok = call i1 @same_words(ptr %dims, ptr %dims.want, i64 %rank)
  br i1 %dims.ok, label %order, label %no
order:
  %strides.p = getelementptr %Record, ptr %record, i32 0, i32 7
  %strides.want = load ptr, ptr %strides.p
  %any = icmp eq ptr %strides.want, null
  br i1 %any, label %yes, label %stride
stride:
  %strides = call ptr @field(ptr %array, i64 ${STRIDES})
  %strides.ok = call i1 @same_words(ptr %strides, ptr %strides.want, i64 %rank)
  br i1 %strides.ok, label %yes, label %no
yes:
  ret ptr %data
no:
  ret ptr null
}

; A new array, in a new holder if the record wants one; null, with the exception set, if there is no
; memory. The holder takes over the reference to the array.
define internal ptr @wrap(ptr %record, ptr %array) {
entry:
  %slot.p = getelementptr %Record, ptr %record, i32 0, i32 1
  %slot = load i64, ptr %slot.p
  %bare = icmp eq i64 %slot, 0
  br i1 %bare, label %plain, label %hold
plain:
  ret ptr %array
hold:
  %type.p = getelementptr %Record, ptr %record, i32 0, i32 0
  %type = load ptr, ptr %type.p
  %holder = call ptr @PyType_GenericAlloc(ptr %type, i64 0)
  %failed = icmp eq ptr %holder, null
  br i1 %failed, label %no, label %fill
no:
  call void @Py_DecRef(ptr %array)
  ret ptr null
fill:
  %at = getelementptr i8, ptr %holder, i64 %slot
  store ptr %array, ptr %at
  %facts.p = getelementptr %Record, ptr %record, i32 0, i32 11
  %facts = load ptr, ptr %facts.p
  call void @fill(ptr %holder, ptr %facts)
  ret ptr %holder
}

; Puts objects into the slots of a new one: a count, then pairs of an offset and an object.
define internal void @fill(ptr %holder, ptr %facts) alwaysinline {
entry:
  %count = load i64, ptr %facts
  %pairs = getelementptr i64, ptr %facts, i64 1
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %put ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %out, label %put
put:
  %offset.p = getelementptr [2 x i64], ptr %pairs, i64 %k, i32 0
  %object.p = getelementptr [2 x i64], ptr %pairs, i64 %k, i32 1
  %offset = load i64, ptr %offset.p
  %object = load ptr, ptr %object.p
  call void @Py_IncRef(ptr %object)
  %to = getelementptr i8, ptr %holder, i64 %offset
  store ptr %object, ptr %to
  %k1 = add i64 %k, 1
  br label %next
out:
  ret void
}

define internal void @release(ptr %objects, i64 %count) {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %drop ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %out, label %drop
drop:
  %p = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %p
  call void @Py_DecRef(ptr %object)
  %i1 = add i64 %i, 1
  br label %next
out:
  ret void
}

define internal void @retain(ptr %objects, i64 %count) {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %hold ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %out, label %hold
hold:
  %p = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %p
  call void @Py_IncRef(ptr %object)
  %i1 = add i64 %i, 1
  br label %next
out:
  ret void
}

; A tuple of objects whose references it takes over.
define internal ptr @tuple_of(ptr %objects, i64 %count) alwaysinline {
  %tuple = call ptr @tuple_with_room(ptr %objects, i64 %count, i64 0)
  ret ptr %tuple
}

; The same with room for more, which is empty.
define internal ptr @tuple_with_room(ptr %objects, i64 %count, i64 %room) {
entry:
  %size = add i64 %count, %room
  %tuple = call ptr @PyTuple_New(i64 %size)
  %failed = icmp eq ptr %tuple, null
  br i1 %failed, label %no, label %fill
fill:
  %items = getelementptr i8, ptr %tuple, i64 ${TUPLE_ITEMS}
  br label %next
next:
  %i = phi i64 [ 0, %fill ], [ %i1, %put ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %yes, label %put
put:
  %p = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %p
  %to = getelementptr ptr, ptr %items, i64 %i
  store ptr %object, ptr %to
  %i1 = add i64 %i, 1
  br label %next
yes:
  ret ptr %tuple
no:
  call void @release(ptr %objects, i64 %count)
  ret ptr null
}
