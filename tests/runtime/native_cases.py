"""Entries in LLVM text, for callables to enter, and arguments for them."""

import numpy as np
from wengert.runtime.fastcall import Array

F4, F8, I8 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)

TEXT = """
declare i32 @usleep(i32)

define internal ptr @arg(ptr %pointers, i64 %i) alwaysinline {
  %p = getelementptr ptr, ptr %pointers, i64 %i
  %v = load ptr, ptr %p
  ret ptr %v
}
; third = the second element of the first + the first of the second
define void @add_second(ptr %pointers, ptr %arena) {
  %a = call ptr @arg(ptr %pointers, i64 0)
  %b = call ptr @arg(ptr %pointers, i64 1)
  %c = call ptr @arg(ptr %pointers, i64 2)
  %a1 = getelementptr float, ptr %a, i64 1
  %x = load float, ptr %a1
  %y = load float, ptr %b
  %z = fadd float %x, %y
  store float %z, ptr %c
  ret void
}
; third = first + second, the first element only
define void @add(ptr %pointers, ptr %arena) {
  %a = call ptr @arg(ptr %pointers, i64 0)
  %b = call ptr @arg(ptr %pointers, i64 1)
  %c = call ptr @arg(ptr %pointers, i64 2)
  %x = load float, ptr %a
  %y = load float, ptr %b
  %z = fadd float %x, %y
  store float %z, ptr %c
  ret void
}
; second = first * scale; third = first + scale
define void @scale(ptr %pointers, ptr %arena) {
  %a = call ptr @arg(ptr %pointers, i64 0)
  %s = call ptr @arg(ptr %pointers, i64 1)
  %b = call ptr @arg(ptr %pointers, i64 2)
  %c = call ptr @arg(ptr %pointers, i64 3)
  %x = load double, ptr %a
  %k = load double, ptr %s
  %m = fmul double %x, %k
  %p = fadd double %x, %k
  store double %m, ptr %b
  store double %p, ptr %c
  ret void
}
define i64 @status(ptr %pointers, ptr %arena) {
  %a = call ptr @arg(ptr %pointers, i64 0)
  %x = load i64, ptr %a
  ret i64 %x
}
; out[0] = the arena's address, after writing all its 4096 bytes and a pause for others to do so
define i64 @scratch(ptr %pointers, ptr %arena) {
  %mark.p = call ptr @arg(ptr %pointers, i64 0)
  %out = call ptr @arg(ptr %pointers, i64 1)
  %mark = load i8, ptr %mark.p
  call void @llvm.memset.p0.i64(ptr %arena, i8 %mark, i64 4096, i1 false)
  %r = call i32 @usleep(i32 200)
  %last.p = getelementptr i8, ptr %arena, i64 4095
  %last = load volatile i8, ptr %last.p
  %where = ptrtoint ptr %arena to i64
  store i64 %where, ptr %out
  %same = icmp eq i8 %last, %mark
  %code = select i1 %same, i64 0, i64 7
  ret i64 %code
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define void @nothing(ptr %pointers, ptr %arena) {
  ret void
}
"""
NAMES = ("add", "add_second", "scale", "status", "scratch", "nothing")


def adder(build, **options):
    spec = Array(F4, (2, 3))
    return build("add", [spec, spec, Array(F4, (2, 3), writeable=True)], **options)


def arrays():
    return [np.full((2, 3), v, F4) for v in (1, 2, 0)]
