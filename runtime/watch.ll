; Has memory changed? The one function behind the callables that watch.py makes (METH_FASTCALL).
; `self` is an ndarray of words: a count, then that many pairs of an address and what was there.
; Pairs are looked at in order, and not beyond one that differs: a later address may be stale then.

@True = external global i8
@False = external global i8
declare void @Py_IncRef(ptr)

define ptr @wengert_unchanged(ptr %self, ptr %args, i64 %nargs) {
entry:
  %table.p = getelementptr i8, ptr %self, i64 ${DATA}
  %table = load ptr, ptr %table.p
  %count = load i64, ptr %table
  %pairs = getelementptr i64, ptr %table, i64 1
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %look ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %yes, label %look
look:
  %address.p = getelementptr [2 x i64], ptr %pairs, i64 %i, i32 0
  %word.p = getelementptr [2 x i64], ptr %pairs, i64 %i, i32 1
  %address = load ptr, ptr %address.p
  %word = load i64, ptr %word.p
  %now = load i64, ptr %address
  %i1 = add i64 %i, 1
  %same = icmp eq i64 %now, %word
  br i1 %same, label %next, label %no
yes:
  call void @Py_IncRef(ptr @True)
  ret ptr @True
no:
  call void @Py_IncRef(ptr @False)
  ret ptr @False
}
