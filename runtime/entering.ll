; Calls with a tuple of arguments and a dict, as Python gives them, and calls that go on by the truth
; of a value. After fastcall.ll. What is taken apart is described by lists (entering.py).
;
; Invariants
; - Arguments that lie in containers are held until the call is done: another thread may change a
;   container meanwhile.
; - Containers are of exactly the classes that were described; keys are compared in their order.

; Whether a key of a dict is this one.
define internal i1 @is_key(ptr %found, ptr %name) alwaysinline {
entry:
  %same = icmp eq ptr %found, %name
  br i1 %same, label %yes, label %kind
kind:
  %type = call ptr @field(ptr %found, i64 ${TYPE})
  %alike = call i1 @has_type(ptr %name, ptr %type)
  br i1 %alike, label %compare, label %no
compare:
  %equal = call i32 @PyObject_RichCompareBool(ptr %found, ptr %name, i32 ${EQUAL})
  %is = icmp eq i32 %equal, 1
  ret i1 %is
yes:
  ret i1 true
no:
  ret i1 false
}

; The values of a dict whose keys are these, in this order; borrowed.
define internal i1 @values_of(ptr %dict, i64 %count, ptr %names, ptr %out) {
entry:
  %used = call ptr @field(ptr %dict, i64 ${DICT_USED})
  %size = ptrtoint ptr %used to i64
  %at = alloca i64, align 8
  %key = alloca ptr, align 8
  store i64 0, ptr %at
  %as.many = icmp eq i64 %size, %count
  br i1 %as.many, label %next, label %no
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %taken ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %yes, label %take
take:
  %to = getelementptr ptr, ptr %out, i64 %k
  %more = call i32 @PyDict_Next(ptr %dict, ptr %at, ptr %key, ptr %to)
  %ended = icmp eq i32 %more, 0
  br i1 %ended, label %no, label %compare
compare:
  %found = load ptr, ptr %key
  %name = call ptr @word(ptr %names, i64 %k)
  %right = call i1 @is_key(ptr %found, ptr %name)
  br i1 %right, label %taken, label %no
taken:
  %k1 = add i64 %k, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether the dict of an object has so many entries.
define internal i1 @has_attributes(ptr %object, i64 %count) {
entry:
  %dict = call ptr @PyObject_GenericGetDict(ptr %object, ptr null)
  %none = icmp eq ptr %dict, null
  br i1 %none, label %no, label %look
look:
  %used = call ptr @field(ptr %dict, i64 ${DICT_USED})
  %size = ptrtoint ptr %used to i64
  call void @Py_DecRef(ptr %dict)
  %as.many = icmp eq i64 %size, %count
  ret i1 %as.many
no:
  call void @PyErr_Clear()
  ret i1 false
}

; These attributes of an object, as references.
define internal i1 @attributes_of(ptr %object, i64 %count, ptr %names, ptr %out) {
entry:
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %taken ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %yes, label %take
take:
  %name = call ptr @word(ptr %names, i64 %k)
  %value = call ptr @PyObject_GetAttr(ptr %object, ptr %name)
  %missing = icmp eq ptr %value, null
  br i1 %missing, label %drop, label %taken
taken:
  %to = getelementptr ptr, ptr %out, i64 %k
  store ptr %value, ptr %to
  %k1 = add i64 %k, 1
  br label %next
yes:
  ret i1 true
drop:
  call void @release(ptr %out, i64 %k)
  call void @PyErr_Clear()
  ret i1 false
}

; The members of a container, as references: false where it is not as described.
define internal i1 @members_of(ptr %shape, ptr %object, i64 %count, ptr %out) {
entry:
  %class = call ptr @word(ptr %shape, i64 1)
  %right = call i1 @has_type(ptr %object, ptr %class)
  br i1 %right, label %known, label %no
known:
  %kind = call i64 @number(ptr %shape, i64 0)
  %names = call ptr @word(ptr %shape, i64 3)
  %bytes = mul i64 %count, 8
  switch i64 %kind, label %slots [ i64 ${OF_TUPLE}, label %tuple
                                   i64 ${OF_LIST}, label %list
                                   i64 ${OF_DICT}, label %dict
                                   i64 ${OF_ATTRIBUTES}, label %attributes ]
tuple:
  %items.inside = getelementptr i8, ptr %object, i64 ${TUPLE_ITEMS}
  br label %sequence
list:
  %items.beside = call ptr @field(ptr %object, i64 ${TUPLE_ITEMS})
  br label %sequence
sequence:
  %items = phi ptr [ %items.inside, %tuple ], [ %items.beside, %list ]
  %size = call i64 @number(ptr %object, i64 ${TUPLE_COUNT})
  %as.many = icmp eq i64 %size, %count
  br i1 %as.many, label %copy, label %no
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %out, ptr %items, i64 %bytes, i1 false)
  br label %hold
dict:
  %listed = call i1 @values_of(ptr %object, i64 %count, ptr %names, ptr %out)
  br i1 %listed, label %hold, label %no
hold:
  call void @retain(ptr %out, i64 %count)
  ret i1 true
attributes:
  %no.more = call i1 @has_attributes(ptr %object, i64 %count)
  br i1 %no.more, label %slots, label %no
slots:
  %found = call i1 @attributes_of(ptr %object, i64 %count, ptr %names, ptr %out)
  ret i1 %found
no:
  ret i1 false
}

; Puts the leaves of a container behind those that `out` has already, as references: how many there
; are then, or -1 - that where the container is not as described.
define internal i64 @take(ptr %shape, ptr %object, ptr %out, i64 %before) {
entry:
  %count = call i64 @number(ptr %shape, i64 2)
  %parts = getelementptr ptr, ptr %shape, i64 4
  %members = alloca ptr, i64 %count, align 16
  %fits = call i1 @members_of(ptr %shape, ptr %object, i64 %count, ptr %members)
  br i1 %fits, label %next, label %unfit
unfit:
  %unlike = xor i64 %before, -1
  ret i64 %unlike
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %taken ]
  %filled = phi i64 [ %before, %entry ], [ %filled1, %taken ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %done, label %one
one:
  %member = call ptr @word(ptr %members, i64 %k)
  %part = call ptr @word(ptr %parts, i64 %k)
  %k1 = add i64 %k, 1
  %is.leaf = icmp eq ptr %part, null
  br i1 %is.leaf, label %leaf, label %inner
leaf:
  %to = getelementptr ptr, ptr %out, i64 %filled
  store ptr %member, ptr %to
  %more = add i64 %filled, 1
  br label %taken
inner:
  %found = call i64 @take(ptr %part, ptr %member, ptr %out, i64 %filled)
  call void @Py_DecRef(ptr %member)
  %failed = icmp slt i64 %found, 0
  br i1 %failed, label %drop, label %taken
taken:
  %filled1 = phi i64 [ %more, %leaf ], [ %found, %inner ]
  br label %next
drop:
  %left = sub i64 %count, %k1
  %rest = getelementptr ptr, ptr %members, i64 %k1
  call void @release(ptr %rest, i64 %left)
  ret i64 %found
done:
  ret i64 %filled
}

; The answer to arguments that are not as described.
@unlike = internal constant i8 0

; Calls `target` with the arguments in a tuple and a dict. `how`: how many leaves there are and one
; more, and descriptions of the tuple and of the dict; or, where all are leaves, 0, how many
; keywords, and their names.
define internal ptr @unpacked(ptr %how, ptr %target, ptr %self, ptr %both) {
entry:
  %tuple = call ptr @word(ptr %both, i64 0)
  %dict = call ptr @word(ptr %both, i64 1)
  %one.more = call i64 @number(ptr %how, i64 0)
  %leaves = sub i64 %one.more, 1
  %flat = icmp eq i64 %one.more, 0
  br i1 %flat, label %look, label %deep
look:
  %count = call i64 @number(ptr %tuple, i64 ${TUPLE_COUNT})
  %items = getelementptr i8, ptr %tuple, i64 ${TUPLE_ITEMS}
  %wanted = call i64 @number(ptr %how, i64 1)
  %names = getelementptr i64, ptr %how, i64 2
  %used = call ptr @field(ptr %dict, i64 ${DICT_USED})
  %named = ptrtoint ptr %used to i64
  %none = or i64 %wanted, %named
  %bare = icmp eq i64 %none, 0
  br i1 %bare, label %go, label %gather
go:
  %answer = call ptr %target(ptr %self, ptr %items, i64 %count)
  ret ptr %answer
gather:
  %all = add i64 %count, %wanted
  %args = alloca ptr, i64 %all, align 16
  %size = mul i64 %count, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %args, ptr %items, i64 %size, i1 false)
  %rest = getelementptr ptr, ptr %args, i64 %count
  %fits = call i1 @values_of(ptr %dict, i64 %wanted, ptr %names, ptr %rest)
  br i1 %fits, label %whole, label %no
whole:
  %answer.all = call ptr %target(ptr %self, ptr %args, i64 %all)
  ret ptr %answer.all
deep:
  %owned = alloca ptr, i64 %leaves, align 16
  %tuple.shape = call ptr @word(ptr %how, i64 1)
  %dict.shape = call ptr @word(ptr %how, i64 2)
  %some = call i64 @take(ptr %tuple.shape, ptr %tuple, ptr %owned, i64 0)
  %odd = icmp slt i64 %some, 0
  br i1 %odd, label %drop, label %keywords
keywords:
  %each = call i64 @take(ptr %dict.shape, ptr %dict, ptr %owned, i64 %some)
  %strange = icmp slt i64 %each, 0
  br i1 %strange, label %drop, label %call
call:
  %answer.deep = call ptr %target(ptr %self, ptr %owned, i64 %leaves)
  call void @release(ptr %owned, i64 %leaves)
  ret ptr %answer.deep
drop:
  %reached = phi i64 [ %some, %deep ], [ %each, %keywords ]
  %taken = xor i64 %reached, -1
  call void @release(ptr %owned, i64 %taken)
  br label %no
no:
  call void @PyErr_Clear()
  ret ptr @unlike
}

; `wengert_call` for arguments in a tuple and a dict.
define ptr @wengert_call_packed(ptr %self, ptr %both, i64 %nargs) {
entry:
  %table = call ptr @field(ptr %self, i64 ${DATA})
  %how.p = getelementptr %Table, ptr %table, i32 0, i32 20
  %how = load ptr, ptr %how.p
  %two = icmp eq i64 %nargs, 2
  br i1 %two, label %go, label %no
go:
  %answer = call ptr @unpacked(ptr %how, ptr @wengert_call, ptr %self, ptr %both)
  %unlike = icmp eq ptr %answer, @unlike
  br i1 %unlike, label %no, label %give
give:
  ret ptr %answer
no:
  %declined = call ptr @decline(ptr %table, ptr %both, i64 %nargs)
  ret ptr %declined
}

; The truth of an array: 1 or 0, -1 on an error.
define internal i32 @truth(ptr %array) {
entry:
  %descr = call ptr @field(ptr %array, i64 ${DESCR})
  %nd.at = getelementptr i8, ptr %array, i64 ${ND}
  %nd = load i32, ptr %nd.at
  %is.bool = icmp eq ptr %descr, @bool
  %single = icmp eq i32 %nd, 0
  %usual = and i1 %is.bool, %single
  br i1 %usual, label %look, label %ask
look:
  %data = call ptr @field(ptr %array, i64 ${DATA})
  %byte = load i8, ptr %data
  %true = icmp ne i8 %byte, 0
  %found = zext i1 %true to i32
  ret i32 %found
ask:
  %asked = call i32 @PyObject_IsTrue(ptr %array)
  ret i32 %asked
}

; Calls the first of a pair, looks at the truth of one of its results, and goes on with the callable
; for that outcome, which is given the arguments and these results. Words in braces that begin with
; T_ are places in the list of entering.py.
define ptr @wengert_turn(ptr %self, ptr %args, i64 %nargs) {
entry:
  %t = call ptr @field(ptr %self, i64 ${DATA})
  %first = call ptr @word(ptr %t, i64 ${T_first})
  %miss = call ptr @word(ptr %t, i64 ${T_miss})
  %made = call ptr @invoke(ptr %first, ptr %args, i64 %nargs)
  %failed = icmp eq ptr %made, null
  %missed = icmp eq ptr %made, %miss
  %ended = or i1 %failed, %missed
  br i1 %ended, label %give, label %look
give:
  ret ptr %made
look:
  %at = call i64 @number(ptr %t, i64 ${T_condition})
  %slot = call i64 @number(ptr %t, i64 ${T_array})
  %tensor = call ptr @item(ptr %made, i64 %at)
  %inside = call ptr @field(ptr %tensor, i64 %slot)
  %bare = icmp eq i64 %slot, 0
  %array = select i1 %bare, ptr %tensor, ptr %inside
  %outcome = call i32 @truth(ptr %array)
  %unclear = icmp slt i32 %outcome, 0
  br i1 %unclear, label %drop, label %gather
gather:
  %count = call i64 @number(ptr %made, i64 ${TUPLE_COUNT})
  %results = getelementptr i8, ptr %made, i64 ${TUPLE_ITEMS}
  %all = add i64 %nargs, %count
  %values = alloca ptr, i64 %all, align 16
  %size = mul i64 %nargs, 8
  %more = mul i64 %count, 8
  %rest = getelementptr ptr, ptr %values, i64 %nargs
  call void @llvm.memcpy.p0.p0.i64(ptr %values, ptr %args, i64 %size, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %results, i64 %more, i1 false)
  %which = zext i32 %outcome to i64
  %next.k = add i64 %which, ${T_next}
  %next = call ptr @word(ptr %t, i64 %next.k)
  %new = icmp eq ptr %next, null
  br i1 %new, label %ask, label %go
go:
  call void @Py_IncRef(ptr %next)
  br label %call
ask:
  %enter = call ptr @word(ptr %t, i64 ${T_enter})
  %truth = icmp eq i32 %outcome, 1
  %bool = select i1 %truth, ptr @True, ptr @False
  call void @retain(ptr %values, i64 %all)
  %tuple = call ptr @tuple_of(ptr %values, i64 %all)
  %poor = icmp eq ptr %tuple, null
  br i1 %poor, label %drop, label %entering
entering:
  %found = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %enter, ptr %bool, ptr %tuple,
                                                             ptr null)
  call void @Py_DecRef(ptr %tuple)
  %lost = icmp eq ptr %found, null
  br i1 %lost, label %drop, label %call
call:
  %following = phi ptr [ %next, %go ], [ %found, %entering ]
  %answer = call ptr @invoke(ptr %following, ptr %values, i64 %all)
  call void @Py_DecRef(ptr %following)
  call void @Py_DecRef(ptr %made)
  ret ptr %answer
drop:
  call void @Py_DecRef(ptr %made)
  ret ptr null
}

; A callable for arguments in a tuple and a dict, in place of one that takes their leaves.
define ptr @wengert_unpack(ptr %self, ptr %both, i64 %nargs) {
entry:
  %u = call ptr @field(ptr %self, i64 ${DATA})
  %inner = call ptr @word(ptr %u, i64 ${U_inner})
  %how = call ptr @word(ptr %u, i64 ${U_how})
  %two = icmp eq i64 %nargs, 2
  br i1 %two, label %go, label %no
go:
  %answer = call ptr @unpacked(ptr %how, ptr @forward, ptr %inner, ptr %both)
  %unlike = icmp eq ptr %answer, @unlike
  br i1 %unlike, label %no, label %give
give:
  ret ptr %answer
no:
  %miss = call ptr @word(ptr %u, i64 ${U_miss})
  call void @Py_IncRef(ptr %miss)
  ret ptr %miss
}

define internal ptr @forward(ptr %inner, ptr %args, i64 %nargs) {
  %answer = call ptr @invoke(ptr %inner, ptr %args, i64 %nargs)
  ret ptr %answer
}
