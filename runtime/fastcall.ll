; The one function behind every callable that fastcall.py makes (METH_FASTCALL). What differs from
; callable to callable is a table of 64-bit words, the data of `self`, which is an ndarray.
; objects.ll and history.ll come before this text, effects.ll and entering.ll after it. Words after a dollar are offsets from layout.py, and the
; flags of fastcall.py.
;
; Invariants
; - Nothing is written and no reference is taken before every argument has been checked.
; - The checks need the GIL; the entry does not.
; - What is copied for the entry is let go when it is done.
; - Without a holder, arguments are kept alive by the caller. What was found inside a holder, or is
;   bound, is not once the GIL is released: another thread may put something else there. So it is
;   held.

declare ptr @wengert_arena_take(ptr, i64)
declare void @wengert_arena_give(ptr, ptr)

; Fills in the arguments' pointers and the objects they belong to; false if one does not fit.
define internal i1 @check(ptr %table, ptr %args, ptr %pointers, ptr %held) {
entry:
  %count.p = getelementptr %Table, ptr %table, i32 0, i32 0
  %count = load i64, ptr %count.p
  %records = getelementptr %Table, ptr %table, i64 1
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %good ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %yes, label %one
one:
  %record = getelementptr %Record, ptr %records, i64 %i
  %arg.p = getelementptr ptr, ptr %args, i64 %i
  %arg = load ptr, ptr %arg.p
  %type = load ptr, ptr %record
  %ignored = icmp eq ptr %type, null
  br i1 %ignored, label %good, label %known
known:
  %object = call ptr @unwrap(ptr %record, ptr %arg)
  %foreign = icmp eq ptr %object, null
  br i1 %foreign, label %no, label %kind
kind:
  %kind.p = getelementptr %Record, ptr %record, i32 0, i32 2
  %which = load i64, ptr %kind.p
  switch i64 %which, label %array [ i64 ${A_FLOAT}, label %number
                                    i64 ${AN_OBJECT}, label %identity
                                    i64 ${A_NUMBER}, label %equality ]
identity:
  %same.p = getelementptr %Record, ptr %record, i32 0, i32 3
  %same = load ptr, ptr %same.p
  %is.known = icmp eq ptr %object, %same
  br i1 %is.known, label %good, label %no
equality:
  %words.p = getelementptr %Record, ptr %record, i32 0, i32 11
  %words = load ptr, ptr %words.p
  %equal = call i1 @as_listed(ptr %words, ptr %object)
  br i1 %equal, label %good, label %no
number:
  %value = getelementptr i8, ptr %object, i64 ${FLOAT}
  br label %good
array:
  %data = call ptr @data_of(ptr %record, ptr %object)
  %unfit = icmp eq ptr %data, null
  br i1 %unfit, label %no, label %good
good:
  %pointer = phi ptr [ %value, %number ], [ %data, %array ], [ null, %identity ],
                     [ null, %equality ], [ null, %one ]
  %found = phi ptr [ %object, %number ], [ %object, %array ], [ %object, %identity ],
                   [ %object, %equality ], [ %arg, %one ]
  %pointer.p = getelementptr ptr, ptr %pointers, i64 %i
  store ptr %pointer, ptr %pointer.p
  %held.p = getelementptr ptr, ptr %held, i64 %i
  store ptr %found, ptr %held.p
  %i1 = add i64 %i, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}

define internal { i64, i64 } @extent(ptr %table, ptr %pointers, i64 %i) alwaysinline {
  %records = getelementptr %Table, ptr %table, i64 1
  %first.p = getelementptr %Record, ptr %records, i64 %i, i32 9
  %first = load i64, ptr %first.p
  %last.p = getelementptr %Record, ptr %records, i64 %i, i32 10
  %last = load i64, ptr %last.p
  %pointer.p = getelementptr ptr, ptr %pointers, i64 %i
  %pointer = load i64, ptr %pointer.p
  %from = add i64 %pointer, %first
  %to = add i64 %pointer, %last
  %half = insertvalue { i64, i64 } poison, i64 %from, 0
  %whole = insertvalue { i64, i64 } %half, i64 %to, 1
  ret { i64, i64 } %whole
}

; Whether no listed pair of arguments shares memory.
define internal i1 @apart(ptr %table, ptr %pointers) {
entry:
  %count.p = getelementptr %Table, ptr %table, i32 0, i32 7
  %count = load i64, ptr %count.p
  %list.p = getelementptr %Table, ptr %table, i32 0, i32 8
  %list = load ptr, ptr %list.p
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %pair ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %yes, label %pair
pair:
  %a.p = getelementptr [2 x i64], ptr %list, i64 %k, i32 0
  %b.p = getelementptr [2 x i64], ptr %list, i64 %k, i32 1
  %a = load i64, ptr %a.p
  %b = load i64, ptr %b.p
  %ea = call { i64, i64 } @extent(ptr %table, ptr %pointers, i64 %a)
  %eb = call { i64, i64 } @extent(ptr %table, ptr %pointers, i64 %b)
  %a0 = extractvalue { i64, i64 } %ea, 0
  %a1 = extractvalue { i64, i64 } %ea, 1
  %b0 = extractvalue { i64, i64 } %eb, 0
  %b1 = extractvalue { i64, i64 } %eb, 1
  %left = icmp ult i64 %a0, %b1
  %right = icmp ult i64 %b0, %a1
  %meet = and i1 %left, %right
  %k1 = add i64 %k, 1
  br i1 %meet, label %no, label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; Copies of the arguments that the entry wants C-contiguous: how many were made, or -1 with the
; exception set. Their pointers take the place of the originals'.
define internal i64 @copy(ptr %table, ptr %own, ptr %held, ptr %copies) {
entry:
  %count.p = getelementptr %Table, ptr %table, i32 0, i32 0
  %count = load i64, ptr %count.p
  %records = getelementptr %Table, ptr %table, i64 1
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %passed ]
  %made = phi i64 [ 0, %entry ], [ %made.now, %passed ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %done, label %one
one:
  %kind.p = getelementptr %Record, ptr %records, i64 %i, i32 2
  %which = load i64, ptr %kind.p
  %wanted = icmp eq i64 %which, ${A_COPY}
  br i1 %wanted, label %new, label %passed
new:
  %held.p = getelementptr ptr, ptr %held, i64 %i
  %array = load ptr, ptr %held.p
  %copy = call ptr @PyArray_NewCopy(ptr %array, i32 ${C_ORDER})
  %failed = icmp eq ptr %copy, null
  br i1 %failed, label %poor, label %keep
keep:
  %copy.p = getelementptr ptr, ptr %copies, i64 %made
  store ptr %copy, ptr %copy.p
  %data = call ptr @field(ptr %copy, i64 ${DATA})
  %own.p = getelementptr ptr, ptr %own, i64 %i
  store ptr %data, ptr %own.p
  %made1 = add i64 %made, 1
  br label %passed
passed:
  %made.now = phi i64 [ %made, %one ], [ %made1, %keep ]
  %i1 = add i64 %i, 1
  br label %next
poor:
  call void @release(ptr %copies, i64 %made)
  ret i64 -1
done:
  ret i64 %made
}

; Puts pointers where the entry wants them: those of the arguments, and those that never change.
define internal void @arrange(ptr %table, ptr %own, ptr %pointers) {
entry:
  %count.p = getelementptr %Table, ptr %table, i32 0, i32 0
  %count = load i64, ptr %count.p
  %records = getelementptr %Table, ptr %table, i64 1
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %passed ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %bound, label %one
one:
  %place.p = getelementptr %Record, ptr %records, i64 %i, i32 12
  %place = load i64, ptr %place.p
  %wanted = icmp sge i64 %place, 0
  br i1 %wanted, label %put, label %passed
put:
  %own.p = getelementptr ptr, ptr %own, i64 %i
  %pointer = load ptr, ptr %own.p
  %to = getelementptr ptr, ptr %pointers, i64 %place
  store ptr %pointer, ptr %to
  br label %passed
passed:
  %i1 = add i64 %i, 1
  br label %next
bound:
  %bound.p = getelementptr %Table, ptr %table, i32 0, i32 10
  %list = load ptr, ptr %bound.p
  %fixed = load i64, ptr %list
  %pairs = getelementptr i64, ptr %list, i64 1
  br label %again
again:
  %k = phi i64 [ 0, %bound ], [ %k1, %fix ]
  %last = icmp eq i64 %k, %fixed
  br i1 %last, label %out, label %fix
fix:
  %where.p = getelementptr [2 x i64], ptr %pairs, i64 %k, i32 0
  %what.p = getelementptr [2 x i64], ptr %pairs, i64 %k, i32 1
  %where = load i64, ptr %where.p
  %what = load ptr, ptr %what.p
  %at = getelementptr ptr, ptr %pointers, i64 %where
  store ptr %what, ptr %at
  %k1 = add i64 %k, 1
  br label %again
out:
  ret void
}

; Arrays for the results; false, with the exception set, if there is no memory.
define internal i1 @allocate(ptr %table, ptr %pointers, ptr %made) {
entry:
  %args.p = getelementptr %Table, ptr %table, i32 0, i32 0
  %args = load i64, ptr %args.p
  %count.p = getelementptr %Table, ptr %table, i32 0, i32 1
  %count = load i64, ptr %count.p
  %records = getelementptr %Table, ptr %table, i64 1
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %kept ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %yes, label %one
one:
  %i = add i64 %args, %k
  %record = getelementptr %Record, ptr %records, i64 %i
  %array = call ptr @new_array(ptr %record)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %no, label %good
good:
  %whole = call ptr @wrap(ptr %record, ptr %array)
  %poor = icmp eq ptr %whole, null
  br i1 %poor, label %no, label %kept
kept:
  %made.p = getelementptr ptr, ptr %made, i64 %k
  store ptr %whole, ptr %made.p
  %data = call ptr @field(ptr %array, i64 ${DATA})
  %place.p = getelementptr %Record, ptr %records, i64 %i, i32 12
  %place = load i64, ptr %place.p
  %pointer.p = getelementptr ptr, ptr %pointers, i64 %place
  store ptr %data, ptr %pointer.p
  %k1 = add i64 %k, 1
  br label %next
yes:
  ret i1 true
no:
  call void @release(ptr %made, i64 %k)
  ret i1 false
}

; Runs the entry, in an arena if it wants one; the first is false if there was no memory for it.
define internal { i1, i64 } @run(ptr %table, ptr %pointers, ptr %held) {
entry:
  %entry.p = getelementptr %Table, ptr %table, i32 0, i32 2
  %native = load ptr, ptr %entry.p
  %flags.p = getelementptr %Table, ptr %table, i32 0, i32 3
  %flags = load i64, ptr %flags.p
  %arena.p = getelementptr %Table, ptr %table, i32 0, i32 4
  %arena = load ptr, ptr %arena.p
  %size.p = getelementptr %Table, ptr %table, i32 0, i32 5
  %size = load i64, ptr %size.p
  %args.p = getelementptr %Table, ptr %table, i32 0, i32 0
  %args = load i64, ptr %args.p
  %bare = icmp eq ptr %arena, null
  br i1 %bare, label %ready, label %take
take:
  %block = call ptr @wengert_arena_take(ptr %arena, i64 %size)
  %empty = icmp eq ptr %block, null
  br i1 %empty, label %poor, label %ready
ready:
  %scratch = phi ptr [ null, %entry ], [ %block, %take ]
  %gil = and i64 %flags, ${RELEASE_GIL}
  %keep.gil = icmp eq i64 %gil, 0
  br i1 %keep.gil, label %short, label %long
short:
  %status.short = call i64 %native(ptr %pointers, ptr %scratch)
  br label %done
long:
  %hold = and i64 %flags, ${HOLD}
  %unheld = icmp eq i64 %hold, 0
  %held.count = select i1 %unheld, i64 0, i64 %args
  %bound.count.p = getelementptr %Table, ptr %table, i32 0, i32 12
  %bound.count = load i64, ptr %bound.count.p
  %bound.p = getelementptr %Table, ptr %table, i32 0, i32 13
  %bound = load ptr, ptr %bound.p
  call void @retain(ptr %held, i64 %held.count)
  call void @retain(ptr %bound, i64 %bound.count)
  %state = call ptr @PyEval_SaveThread()
  %status.long = call i64 %native(ptr %pointers, ptr %scratch)
  call void @PyEval_RestoreThread(ptr %state)
  call void @release(ptr %bound, i64 %bound.count)
  call void @release(ptr %held, i64 %held.count)
  br label %done
done:
  %status.raw = phi i64 [ %status.short, %short ], [ %status.long, %long ]
  br i1 %bare, label %out, label %give
give:
  call void @wengert_arena_give(ptr %arena, ptr %scratch)
  br label %out
out:
  ; An entry that returns nothing leaves anything in the register.
  %says = and i64 %flags, ${STATUS}
  %mute = icmp eq i64 %says, 0
  %status = select i1 %mute, i64 0, i64 %status.raw
  %result = insertvalue { i1, i64 } { i1 true, i64 poison }, i64 %status, 1
  ret { i1, i64 } %result
poor:
  %error = call ptr @PyErr_NoMemory()
  ret { i1, i64 } { i1 false, i64 0 }
}

; The answer to arguments that do not fit: the slow path's, or always the same.
define internal ptr @decline(ptr %table, ptr %args, i64 %nargs) noinline cold {
entry:
  %slow.p = getelementptr %Table, ptr %table, i32 0, i32 6
  %slow = load ptr, ptr %slow.p
  %none = icmp eq ptr %slow, null
  br i1 %none, label %not, label %call
not:
  %miss.p = getelementptr %Table, ptr %table, i32 0, i32 17
  %miss = load ptr, ptr %miss.p
  call void @Py_IncRef(ptr %miss)
  ret ptr %miss
call:
  call void @retain(ptr %args, i64 %nargs)
  %tuple = call ptr @tuple_of(ptr %args, i64 %nargs)
  %failed = icmp eq ptr %tuple, null
  br i1 %failed, label %error, label %go
go:
  %result = call ptr @PyObject_CallObject(ptr %slow, ptr %tuple)
  call void @Py_DecRef(ptr %tuple)
  ret ptr %result
error:
  ret ptr null
}

define ptr @wengert_call(ptr %self, ptr %args, i64 %nargs) {
entry:
  %table = call ptr @field(ptr %self, i64 ${DATA})
  %count.p = getelementptr %Table, ptr %table, i32 0, i32 0
  %count = load i64, ptr %count.p
  %own = alloca ptr, i64 %count, align 16
  %held = alloca ptr, i64 %count, align 16
  %copies = alloca ptr, i64 %count, align 16
  %right = icmp eq i64 %nargs, %count
  br i1 %right, label %numbers, label %no
numbers:
  %known.p = getelementptr %Table, ptr %table, i32 0, i32 21
  %known = load ptr, ptr %known.p
  %renew.p = getelementptr %Table, ptr %table, i32 0, i32 22
  %renew = load ptr, ptr %renew.p
  %current = call i32 @are_current(ptr %known, ptr %renew)
  switch i32 %current, label %error [ i32 1, label %mode
                                      i32 0, label %no ]
mode:
  %modes.p = getelementptr %Table, ptr %table, i32 0, i32 15
  %modes = load ptr, ptr %modes.p
  %any.mode = icmp eq ptr %modes, null
  br i1 %any.mode, label %watch, label %thread
thread:
  %usual = call i1 @same_modes(ptr %modes)
  br i1 %usual, label %watch, label %no
watch:
  %watched.p = getelementptr %Table, ptr %table, i32 0, i32 11
  %watched = load ptr, ptr %watched.p
  %unchanged = call i1 @unchanged(ptr %watched)
  br i1 %unchanged, label %look, label %no
look:
  %fit = call i1 @check(ptr %table, ptr %args, ptr %own, ptr %held)
  br i1 %fit, label %overlap, label %no
overlap:
  %apart = call i1 @apart(ptr %table, ptr %own)
  br i1 %apart, label %fitted, label %no
no:
  %declined = call ptr @decline(ptr %table, ptr %args, i64 %nargs)
  ret ptr %declined
fitted:
  %copied = call i64 @copy(ptr %table, ptr %own, ptr %held, ptr %copies)
  %poor = icmp slt i64 %copied, 0
  br i1 %poor, label %error, label %go
go:
  %answer = call ptr @enter(ptr %table, ptr %args, ptr %own, ptr %held)
  call void @release(ptr %copies, i64 %copied)
  ret ptr %answer
error:
  ret ptr null
}

; Runs the entry on arguments that fit: the answer of the callable.
define internal ptr @enter(ptr %table, ptr %args, ptr %own, ptr %held) {
entry:
  %results.p = getelementptr %Table, ptr %table, i32 0, i32 1
  %results = load i64, ptr %results.p
  %all.p = getelementptr %Table, ptr %table, i32 0, i32 9
  %all = load i64, ptr %all.p
  %pointers = alloca ptr, i64 %all, align 16
  %made = alloca ptr, i64 %results, align 16
  call void @arrange(ptr %table, ptr %own, ptr %pointers)
  %draws.p = getelementptr %Table, ptr %table, i32 0, i32 26
  %draws = load ptr, ptr %draws.p
  %stateless = icmp eq ptr %draws, null
  br i1 %stateless, label %ready, label %snap
snap:
  %snapped = call ptr @snapshots(ptr %draws)       ; before anything is drawn
  %lost = icmp eq ptr %snapped, null
  br i1 %lost, label %error, label %ready
ready:
  %states = phi ptr [ null, %entry ], [ %snapped, %snap ]
  %enough = call i1 @allocate(ptr %table, ptr %pointers, ptr %made)
  br i1 %enough, label %go, label %poor
go:
  %outcome = call { i1, i64 } @run(ptr %table, ptr %pointers, ptr %held)
  %ran = extractvalue { i1, i64 } %outcome, 0
  %status = extractvalue { i1, i64 } %outcome, 1
  br i1 %ran, label %ended, label %drop
ended:
  %good = icmp eq i64 %status, 0
  br i1 %good, label %answer, label %report
report:
  call void @let_go(ptr %states)
  call void @release(ptr %made, i64 %results)
  %number = call ptr @PyLong_FromLongLong(i64 %status)
  %failed.p = getelementptr %Table, ptr %table, i32 0, i32 18
  %failed = load ptr, ptr %failed.p
  %told = icmp eq ptr %failed, null
  br i1 %told, label %tell, label %judge
tell:
  ret ptr %number
judge:
  %judged = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %failed, ptr %number, ptr null)
  call void @Py_DecRef(ptr %number)
  ret ptr %judged
drop:
  call void @release(ptr %made, i64 %results)
  br label %poor
poor:
  call void @let_go(ptr %states)
  br label %error
error:
  ret ptr null
answer:
  %whence.p = getelementptr %Table, ptr %table, i32 0, i32 24
  %whence = load ptr, ptr %whence.p
  %anywhere = icmp eq ptr %whence, null
  br i1 %anywhere, label %end, label %where
where:
  %found = call ptr @wengert_place(ptr %whence)
  %nowhere = icmp eq ptr %found, null
  br i1 %nowhere, label %drop, label %end
end:
  %place = phi ptr [ null, %answer ], [ %found, %where ]
  %finished = call ptr @finish(ptr %table, ptr %args, ptr %made, ptr %place, ptr %states)
  call void @let_go(ptr %place)
  ret ptr %finished
}

; The answer of a callable that ran, which takes over what was made, and states.
define internal ptr @finish(ptr %table, ptr %args, ptr %made, ptr %place, ptr %states) {
entry:
  %effects.p = getelementptr %Table, ptr %table, i32 0, i32 23
  %effects = load ptr, ptr %effects.p
  %effectless = icmp eq ptr %effects, null
  br i1 %effectless, label %look, label %write
write:
  %noted = call i1 @count_writes(ptr %effects, ptr %args, ptr %place)
  br i1 %noted, label %stored, label %unnoted
stored:
  %given = call i1 @give_storages(ptr %effects, ptr %made)
  br i1 %given, label %look, label %unnoted
unnoted:
  call void @let_go(ptr %states)
  %all.p = getelementptr %Table, ptr %table, i32 0, i32 1
  %all = load i64, ptr %all.p
  call void @release(ptr %made, i64 %all)
  ret ptr null
look:
  %results.p = getelementptr %Table, ptr %table, i32 0, i32 1
  %results = load i64, ptr %results.p
  %shown.p = getelementptr %Table, ptr %table, i32 0, i32 19
  %shown = load i64, ptr %shown.p
  %history.p = getelementptr %Table, ptr %table, i32 0, i32 14
  %history = load ptr, ptr %history.p
  %rootless = icmp eq ptr %history, null
  br i1 %rootless, label %more, label %connect
connect:
  %hidden = getelementptr ptr, ptr %made, i64 %shown
  %hidden.count = sub i64 %results, %shown
  %kept = call i64 @number(ptr %history, i64 ${H_kept_count})
  %saved = call ptr @tuple_with_room(ptr %hidden, i64 %hidden.count, i64 %kept)
  %unsaved = icmp eq ptr %saved, null
  br i1 %unsaved, label %stray, label %tie
stray:
  call void @let_go(ptr %states)
  br label %poor
tie:
  %tied = call i1 @give_history(ptr %history, ptr %args, ptr %made, i64 %shown, ptr %saved,
                                ptr %place, ptr %states)
  br i1 %tied, label %more, label %poor
more:
  br i1 %effectless, label %count, label %effect
effect:
  call void @set_gradients(ptr %effects, ptr %made)
  %spent = call i1 @give_spent(ptr %effects, ptr %args, ptr %made, ptr %place)
  br i1 %spent, label %count, label %poor
poor:
  call void @release(ptr %made, i64 %shown)
  ret ptr null
count:
  %counter.p = getelementptr %Table, ptr %table, i32 0, i32 16
  %counter = load ptr, ptr %counter.p
  %uncounted = icmp eq ptr %counter, null
  br i1 %uncounted, label %answer, label %add
add:
  %before = load i64, ptr %counter
  %now = add i64 %before, 1
  store i64 %now, ptr %counter
  br label %answer
answer:
  %answer.p = getelementptr %Table, ptr %table, i32 0, i32 25
  %steps = load ptr, ptr %answer.p
  %usual = icmp eq ptr %steps, null
  br i1 %usual, label %plain, label %odd
odd:
  %whole = call ptr @assemble(ptr %steps, ptr %args, ptr %made, ptr %place)
  call void @release(ptr %made, i64 %shown)
  ret ptr %whole
plain:
  %flags.p = getelementptr %Table, ptr %table, i32 0, i32 3
  %flags = load i64, ptr %flags.p
  %several = and i64 %flags, ${TUPLE}
  %as.tuple = icmp ne i64 %several, 0
  br i1 %as.tuple, label %tuple, label %single
tuple:
  %packed = call ptr @tuple_of(ptr %made, i64 %shown)
  ret ptr %packed
single:
  %nothing = icmp eq i64 %shown, 0
  br i1 %nothing, label %none, label %one
none:
  call void @Py_IncRef(ptr @None)
  ret ptr @None
one:
  %only = load ptr, ptr %made
  ret ptr %only
}

; Has memory changed? `self` is a list of addresses and words.
define ptr @wengert_unchanged(ptr %self, ptr %args, i64 %nargs) {
  %list = call ptr @field(ptr %self, i64 ${DATA})
  %same = call i1 @unchanged(ptr %list)
  %answer = select i1 %same, ptr @True, ptr @False
  call void @Py_IncRef(ptr %answer)
  ret ptr %answer
}
