; Runs a program from its table: words that name functions and say what their argument blocks hold.
; One text for all programs, so that a program compiles its kernels and nothing else.
;
; Table: launches, most words of a block, where to add up times (or null), the spans (or null), up
; to which launch one may fail (those after a failure are not run), how many pointers there are, then
; the launches: function, chunks, how many words, how many of them are addresses, the words, and for
; each address which word it is, and what it is relative to: 0 the arena, 1 the status word, 2 and up
; the pointers in order. Most words are sizes: a block is copied first, and addresses added then.

declare void @wengert_parallel(ptr, ptr, i64)
declare i32 @clock_gettime(i32, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define void @wengert_copy(ptr %args, i64 %chunk) nounwind {
  %to = load ptr, ptr %args, align 8
  %from.p = getelementptr i64, ptr %args, i64 1
  %from = load ptr, ptr %from.p, align 8
  %bytes.p = getelementptr i64, ptr %args, i64 2
  %bytes = load i64, ptr %bytes.p, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  ret void
}

define internal i64 @now() nounwind {
  %time = alloca { i64, i64 }, align 8
  %got = call i32 @clock_gettime(i32 ${CLOCK}, ptr %time)
  %s = load i64, ptr %time, align 8
  %ns.p = getelementptr i64, ptr %time, i64 1
  %ns = load i64, ptr %ns.p, align 8
  %big = mul i64 %s, 1000000000
  %all = add i64 %big, %ns
  ret i64 %all
}

define internal void @start(ptr %function, ptr %block, i64 %chunks) nounwind {
entry:
  %single = icmp eq i64 %chunks, 1
  br i1 %single, label %one, label %several
one:
  call void %function(ptr %block, i64 0)
  ret void
several:
  call void @wengert_parallel(ptr %function, ptr %block, i64 %chunks)
  ret void
}

; Whether no array that is written to shares memory with another. Spans: how many are written to, a
; number and bytes for each, in order of address when last looked at; then the same for those that
; are only read, in any order. If the first are not in order now, the answer is false too, and
; whoever asked looks again. Each of the others is looked up among them.
define internal { i64, i64 } @span(ptr %list, i64 %k, ptr %pointers) alwaysinline nounwind {
  %at = shl i64 %k, 1
  %span = getelementptr i64, ptr %list, i64 %at
  %which = load i64, ptr %span, align 8
  %bytes.p = getelementptr i64, ptr %span, i64 1
  %bytes = load i64, ptr %bytes.p, align 8
  %start.p = getelementptr i64, ptr %pointers, i64 %which
  %start = load i64, ptr %start.p, align 8
  %stop = add i64 %start, %bytes
  %half = insertvalue { i64, i64 } poison, i64 %start, 0
  %whole = insertvalue { i64, i64 } %half, i64 %stop, 1
  ret { i64, i64 } %whole
}
define internal i1 @apart(ptr %spans, ptr %pointers) nounwind {
entry:
  %none = icmp eq ptr %spans, null
  br i1 %none, label %yes, label %begin
begin:
  %count = load i64, ptr %spans, align 8
  %list = getelementptr i64, ptr %spans, i64 1
  %twice = shl i64 %count, 1
  %rest = getelementptr i64, ptr %list, i64 %twice
  %others = load i64, ptr %rest, align 8
  %reads = getelementptr i64, ptr %rest, i64 1
  br label %next
next:
  %k = phi i64 [ 0, %begin ], [ %k1, %one ]
  %before = phi i64 [ 0, %begin ], [ %stop, %one ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %other, label %look
look:
  %w = call { i64, i64 } @span(ptr %list, i64 %k, ptr %pointers)
  %start = extractvalue { i64, i64 } %w, 0
  %stop = extractvalue { i64, i64 } %w, 1
  %bad = icmp ult i64 %start, %before
  br i1 %bad, label %no, label %one
one:
  %k1 = add i64 %k, 1
  br label %next
other:
  %i = phi i64 [ 0, %next ], [ %i1, %clear ]
  %done = icmp eq i64 %i, %others
  br i1 %done, label %yes, label %search
search:
  %r = call { i64, i64 } @span(ptr %reads, i64 %i, ptr %pointers)
  %r.start = extractvalue { i64, i64 } %r, 0
  %r.stop = extractvalue { i64, i64 } %r, 1
  br label %halve
halve:                                     ; the first written span that ends behind its start
  %low = phi i64 [ 0, %search ], [ %low1, %step ]
  %high = phi i64 [ %count, %search ], [ %high1, %step ]
  %found = icmp eq i64 %low, %high
  br i1 %found, label %compare, label %step
step:
  %sum = add i64 %low, %high
  %middle = lshr i64 %sum, 1
  %m = call { i64, i64 } @span(ptr %list, i64 %middle, ptr %pointers)
  %m.stop = extractvalue { i64, i64 } %m, 1
  %behind = icmp ugt i64 %m.stop, %r.start
  %above = add i64 %middle, 1
  %low1 = select i1 %behind, i64 %low, i64 %above
  %high1 = select i1 %behind, i64 %middle, i64 %high
  br label %halve
compare:
  %beyond = icmp eq i64 %low, %count
  br i1 %beyond, label %clear, label %meet
meet:
  %f = call { i64, i64 } @span(ptr %list, i64 %low, ptr %pointers)
  %f.start = extractvalue { i64, i64 } %f, 0
  %overlap = icmp ult i64 %f.start, %r.stop
  br i1 %overlap, label %no, label %clear
clear:
  %i1 = add i64 %i, 1
  br label %other
yes:
  ret i1 true
no:
  ret i1 false
}


define i64 @wengert_run(ptr %table, ptr %pointers, ptr %arena) nounwind {
check:
  %spans.p = getelementptr i64, ptr %table, i64 3
  %spans = load atomic ptr, ptr %spans.p acquire, align 8
  %apart = call i1 @apart(ptr %spans, ptr %pointers)
  br i1 %apart, label %entry, label %decline
decline:
  ret i64 -1
entry:
  %status = alloca i64, align 8
  store i64 0, ptr %status, align 8
  %count = load i64, ptr %table, align 8
  %most.p = getelementptr i64, ptr %table, i64 1
  %most = load i64, ptr %most.p, align 8
  %times.p = getelementptr i64, ptr %table, i64 2
  %times = load ptr, ptr %times.p, align 8
  %timed = icmp ne ptr %times, null
  %block = alloca i64, i64 %most, align 16
  %failing.p = getelementptr i64, ptr %table, i64 4
  %failing = load i64, ptr %failing.p, align 8
  %pointers.p = getelementptr i64, ptr %table, i64 5
  %pointer.count = load i64, ptr %pointers.p, align 8
  %first = getelementptr i64, ptr %table, i64 6
  %origin.count = add i64 %pointer.count, 2
  %origins = alloca i64, i64 %origin.count, align 16
  %origins.1 = getelementptr i64, ptr %origins, i64 1
  %origins.2 = getelementptr i64, ptr %origins, i64 2
  %pointer.bytes = shl i64 %pointer.count, 3
  store ptr %arena, ptr %origins, align 8
  store ptr %status, ptr %origins.1, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr %origins.2, ptr %pointers, i64 %pointer.bytes, i1 false)
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %after ], [ %i1, %ask ]
  %record = phi ptr [ %first, %entry ], [ %fixes.end, %after ], [ %fixes.end, %ask ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %out, label %launch
launch:
  %function = load ptr, ptr %record, align 8
  %chunks.p = getelementptr i64, ptr %record, i64 1
  %chunks = load i64, ptr %chunks.p, align 8
  %n.p = getelementptr i64, ptr %record, i64 2
  %n = load i64, ptr %n.p, align 8
  %m.p = getelementptr i64, ptr %record, i64 3
  %m = load i64, ptr %m.p, align 8
  %words = getelementptr i64, ptr %record, i64 4
  %fixes = getelementptr i64, ptr %words, i64 %n
  %fixes.end = getelementptr [2 x i64], ptr %fixes, i64 %m
  %bytes = shl i64 %n, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %block, ptr %words, i64 %bytes, i1 false)
  br label %more.fixes
more.fixes:
  %fix = phi ptr [ %fixes, %launch ], [ %fix.next, %add ]
  %fixed = icmp eq ptr %fix, %fixes.end
  br i1 %fixed, label %go, label %add
add:
  %which = load i64, ptr %fix, align 8
  %origin.k.p = getelementptr i64, ptr %fix, i64 1
  %origin.k = load i64, ptr %origin.k.p, align 8
  %origin.p = getelementptr i64, ptr %origins, i64 %origin.k
  %origin = load i64, ptr %origin.p, align 8
  %slot = getelementptr i64, ptr %block, i64 %which
  %offset = load i64, ptr %slot, align 8
  %address = add i64 %offset, %origin
  store i64 %address, ptr %slot, align 8
  %fix.next = getelementptr [2 x i64], ptr %fix, i64 1
  br label %more.fixes
go:
  br i1 %timed, label %time, label %plain
plain:
  call void @start(ptr %function, ptr %block, i64 %chunks)
  br label %after
time:
  %t0 = call i64 @now()
  call void @start(ptr %function, ptr %block, i64 %chunks)
  %t1 = call i64 @now()
  %dt = sub i64 %t1, %t0
  %sum.p = getelementptr i64, ptr %times, i64 %i
  %sum = load i64, ptr %sum.p, align 8
  %more = add i64 %sum, %dt
  store i64 %more, ptr %sum.p, align 8
  br label %after
after:
  %i1 = add i64 %i, 1
  %early = icmp sle i64 %i1, %failing
  br i1 %early, label %ask, label %next
ask:
  %so.far = load i64, ptr %status, align 8
  %failed = icmp ne i64 %so.far, 0
  br i1 %failed, label %out, label %next
out:
  %result = load i64, ptr %status, align 8
  ret i64 %result
}
