; What calling an object does, in place of its class's `__call__`: it tries the callables in a list
; that the object has in a slot, one after the other, each with the arguments as a tuple and a dict.
; Words after a dollar are offsets; objects, and where the slots are, are imported (calling.py).

declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare ptr @PyObject_CallMethodObjArgs(ptr, ptr, ...)
declare ptr @PyDict_New()
declare i32 @PyErr_ExceptionMatches(ptr)
declare void @PyErr_Clear()
@exception = external global i8
@miss = external global i8
@nothing = external global i8
@otherwise = external global i8
@recover = external global i8
@slot = external global i8                       ; an offset, as an address
@inner_slot = external global i8
@function = external global i8                   ; the class of built-in functions

define internal ptr @field(ptr %object, i64 %offset) alwaysinline {
  %at = getelementptr i8, ptr %object, i64 %offset
  %value = load ptr, ptr %at
  ret ptr %value
}

; Calls a callable with a tuple and a dict: a built-in function that takes an array of arguments
; without Python between.
define internal ptr @invoke(ptr %callable, ptr %args, ptr %dict) {
entry:
  %both = alloca [2 x ptr], align 16
  %class = call ptr @field(ptr %callable, i64 ${TYPE})
  %built.in = icmp eq ptr %class, @function
  br i1 %built.in, label %look, label %general
look:
  %method = call ptr @field(ptr %callable, i64 ${METHOD})
  %flags.p = getelementptr i8, ptr %method, i64 ${METHOD_FLAGS}
  %flags = load i32, ptr %flags.p
  %fast = icmp eq i32 %flags, ${METH_FASTCALL}
  br i1 %fast, label %direct, label %general
direct:
  %second = getelementptr ptr, ptr %both, i64 1
  store ptr %args, ptr %both
  store ptr %dict, ptr %second
  %self = call ptr @field(ptr %callable, i64 ${METHOD_SELF})
  %native = call ptr @field(ptr %method, i64 ${METHOD_FUNCTION})
  %answer = call ptr %native(ptr %self, ptr %both, i64 2)
  ret ptr %answer
general:
  %asked = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %callable, ptr %args, ptr %dict,
                                                             ptr null)
  ret ptr %asked
}

; A method of the object, given the arguments.
define internal ptr @method(ptr %self, ptr %name, ptr %args, ptr %kwargs) {
entry:
  %none = icmp eq ptr %kwargs, null
  br i1 %none, label %make, label %take
make:
  %empty = call ptr @PyDict_New()
  %poor = icmp eq ptr %empty, null
  br i1 %poor, label %error, label %go
take:
  call void @Py_IncRef(ptr %kwargs)
  br label %go
go:
  %dict = phi ptr [ %empty, %make ], [ %kwargs, %take ]
  %answer = call ptr (ptr, ptr, ...) @PyObject_CallMethodObjArgs(ptr %self, ptr %name, ptr %args,
                                                                 ptr %dict, ptr null)
  call void @Py_DecRef(ptr %dict)
  ret ptr %answer
error:
  ret ptr null
}

define ptr @wengert_call_object(ptr %self, ptr %args, ptr %kwargs) {
entry:
  %list = call ptr @field(ptr %self, i64 ptrtoint (ptr @slot to i64))
  %unset = icmp eq ptr %list, null
  br i1 %unset, label %general, label %start
start:
  %none = icmp eq ptr %kwargs, null
  %dict = select i1 %none, ptr @nothing, ptr %kwargs
  call void @Py_IncRef(ptr %list)                ; another may take its place meanwhile
  br label %next
next:
  %k = phi i64 [ 0, %start ], [ %k1, %missed ]
  %size = call ptr @field(ptr %list, i64 ${LIST_SIZE})
  %count = ptrtoint ptr %size to i64
  %more = icmp slt i64 %k, %count
  br i1 %more, label %try, label %out
try:
  %items = call ptr @field(ptr %list, i64 ${LIST_ITEMS})
  %item.p = getelementptr ptr, ptr %items, i64 %k
  %item = load ptr, ptr %item.p
  %answer = call ptr @invoke(ptr %item, ptr %args, ptr %dict)
  %k1 = add i64 %k, 1
  %is.miss = icmp eq ptr %answer, @miss
  br i1 %is.miss, label %missed, label %done
missed:
  call void @Py_DecRef(ptr %answer)
  br label %next
done:
  call void @Py_DecRef(ptr %list)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %judge, label %give
give:
  ret ptr %answer
judge:
  %usual = call i32 @PyErr_ExceptionMatches(ptr @exception)
  %grave = icmp eq i32 %usual, 0
  br i1 %grave, label %raise, label %again
raise:
  ret ptr null
again:
  call void @PyErr_Clear()
  %recovered = call ptr @method(ptr %self, ptr @recover, ptr %args, ptr %kwargs)
  ret ptr %recovered
out:
  call void @Py_DecRef(ptr %list)
  br label %general
general:
  %found = call ptr @method(ptr %self, ptr @otherwise, ptr %args, ptr %kwargs)
  ret ptr %found
}

; The same for an object that stands for another, which it has in a slot.
define ptr @wengert_call_inner(ptr %self, ptr %args, ptr %kwargs) {
  %inner = call ptr @field(ptr %self, i64 ptrtoint (ptr @inner_slot to i64))
  call void @Py_IncRef(ptr %inner)
  %answer = call ptr @wengert_call_object(ptr %inner, ptr %args, ptr %kwargs)
  call void @Py_DecRef(ptr %inner)
  ret ptr %answer
}
