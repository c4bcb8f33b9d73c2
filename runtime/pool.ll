; The thread pool: `wengert_parallel(fn, ctx, n)` calls fn(ctx, 0) ... fn(ctx, n-1), on any thread,
; in any order, each exactly once, and returns when all have returned.
;
; Words after a dollar are filled in by threads.py, which also says how a worker sleeps on this system:
; @sleep_while(generation), @wake_sleepers(how many) and @reset_sleep() are appended to this text.
;
; Invariants
; - @work is (generation << 32 | back << 16 | front): the chunks from front on and before back are
;   left. One is taken by compare-and-swap of the whole word. So a worker that read the job's fields
;   and then takes a chunk knows that they belong to it: had the job ended meanwhile, the word would
;   have changed. A late worker takes nothing.
; - The caller takes the first chunk that is left, workers the last: what a thread wrote or read in
;   one job, it is likely to have in its cache in the next (65,536 floats added on two cores of their
;   own L2: 16 us where any thread took any chunk, 6 so).
; - @fn, @ctx and @base are written only while nothing is left and all that was taken is done.
; - The caller waits for chunks, not for workers: a worker that sleeps, or that a fork left behind,
;   delays nobody.
; - Whoever holds @busy may publish a job, or start and stop workers. A call that does not get it
;   (nested in a chunk, or from another thread) runs its chunks itself.

@work     = internal global i64 0, align 128
@done     = internal global i64 0, align 128
@busy     = internal global i32 0, align 128
@sleepers = internal global i32 0, align 128
@stopping = internal global i32 0
@wanted   = internal global i32 0          ; workers, not counting the caller
@running  = internal global i32 0
@fn       = internal global ptr null
@ctx      = internal global ptr null
@base     = internal global i64 0          ; the first chunk's number: jobs have at most ${MOST}
@threads  = internal global [${MAX_WORKERS} x i64] zeroinitializer

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sched_yield()

; Takes and runs chunks until none is left, the first or the last ones first; then adds what it did
; to @done, once.
define internal void @help(i1 %first) {
entry:
  br label %look
look:
  %mine = phi i64 [ 0, %entry ], [ %mine, %lost ], [ %more, %run ]
  %word = load atomic i64, ptr @work acquire, align 8
  %front = and i64 %word, ${MOST}
  %high = lshr i64 %word, 16
  %back = and i64 %high, ${MOST}
  %none = icmp eq i64 %front, %back
  br i1 %none, label %finish, label %take
take:
  %fn = load atomic ptr, ptr @fn monotonic, align 8
  %ctx = load atomic ptr, ptr @ctx monotonic, align 8
  %base = load atomic i64, ptr @base monotonic, align 8
  %step = select i1 %first, i64 1, i64 -65536
  %next = add i64 %word, %step
  %swap = cmpxchg ptr @work, i64 %word, i64 %next acq_rel acquire, align 8
  %won = extractvalue { i64, i1 } %swap, 1
  br i1 %won, label %run, label %lost
lost:
  br label %look
run:
  %last = sub i64 %back, 1
  %place = select i1 %first, i64 %front, i64 %last
  %chunk = add i64 %base, %place
  call void %fn(ptr %ctx, i64 %chunk)
  %more = add i64 %mine, 1
  br label %look
finish:
  %any = icmp ne i64 %mine, 0
  br i1 %any, label %report, label %out
report:
  %old = atomicrmw add ptr @done, i64 %mine acq_rel, align 8
  br label %out
out:
  ret void
}

define internal ptr @worker(ptr %unused) {
entry:
  br label %idle
idle:                                      ; a fresh patience after work and after sleep
  br label %look
look:
  %spins = phi i32 [ 0, %idle ], [ %spun, %wait ]
  %word = load atomic i64, ptr @work acquire, align 8
  %front = and i64 %word, ${MOST}
  %high = lshr i64 %word, 16
  %back = and i64 %high, ${MOST}
  %some = icmp ne i64 %front, %back
  br i1 %some, label %help, label %halt
help:
  call void @help(i1 false)
  br label %idle
halt:
  %stop = load atomic i32, ptr @stopping acquire, align 4
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %out, label %wait
wait:
  ${PAUSE}
  %spun = add i32 %spins, 1
  %patient = icmp slt i32 %spun, ${SPINS}
  br i1 %patient, label %look, label %sleep
sleep:
  ; Counted before the generation is looked at again, published before the count is read: so
  ; either the publisher sees a sleeper, or the sleeper sees the new generation.
  %seen = lshr i64 %word, 32
  %generation = trunc i64 %seen to i32
  %up = atomicrmw add ptr @sleepers, i32 1 seq_cst, align 4
  call void @sleep_while(i32 %generation)
  %down = atomicrmw sub ptr @sleepers, i32 1 seq_cst, align 4
  br label %idle
out:
  ret ptr null
}

; A new generation with `chunks` left, and as many sleepers woken as can be of use.
define internal void @publish(i64 %chunks) {
entry:
  %old = load atomic i64, ptr @work monotonic, align 8
  %generation = and i64 %old, -4294967296
  %next = add i64 %generation, 4294967296
  %all = shl i64 %chunks, 16
  %word = or i64 %next, %all
  %was = atomicrmw xchg ptr @work, i64 %word seq_cst, align 8
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %any = icmp sgt i32 %asleep, 0
  br i1 %any, label %wake, label %out
wake:
  call void @wake_sleepers(i64 %chunks)
  br label %out
out:
  ret void
}

; Called with @busy held. Threads that the system refuses are not asked for again.
define internal void @start_missing() {
entry:
  %full = alloca [16 x i64], align 16
  %old = alloca [16 x i64], align 16
  %wanted = load i32, ptr @wanted
  %have = load i32, ptr @running
  %missing = icmp slt i32 %have, %wanted
  br i1 %missing, label %mask, label %out
mask:
  ; Workers inherit the mask: signals are Python's business, only faults stay deliverable.
  call void @llvm.memset.p0.i64(ptr align 16 %full, i8 -1, i64 128, i1 false)
  store i64 ${SIGNALS}, ptr %full
  %masked = call i32 @pthread_sigmask(i32 ${SIG_SETMASK}, ptr %full, ptr %old)
  br label %next
next:
  %i = phi i32 [ %have, %mask ], [ %i1, %made ]
  %slot = getelementptr [${MAX_WORKERS} x i64], ptr @threads, i64 0, i32 %i
  %failed = call i32 @pthread_create(ptr %slot, ptr null, ptr @worker, ptr null)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %made, label %fewer
made:
  %i1 = add i32 %i, 1
  %enough = icmp eq i32 %i1, %wanted
  br i1 %enough, label %unmask, label %next
fewer:
  store i32 %i, ptr @wanted
  br label %unmask
unmask:
  %now = phi i32 [ %i1, %made ], [ %i, %fewer ]
  store i32 %now, ptr @running
  %restored = call i32 @pthread_sigmask(i32 ${SIG_SETMASK}, ptr %old, ptr null)
  br label %out
out:
  ret void
}
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal void @run_alone(ptr %fn, ptr %ctx, i64 %count) {
entry:
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %chunk, label %out
chunk:
  %i = phi i64 [ 0, %entry ], [ %i1, %chunk ]
  call void %fn(ptr %ctx, i64 %i)
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %count
  br i1 %more, label %chunk, label %out
out:
  ret void
}

define void @wengert_parallel(ptr %fn, ptr %ctx, i64 %count) {
entry:
  %wanted = load atomic i32, ptr @wanted monotonic, align 4
  %helpers = icmp sgt i32 %wanted, 0
  %several = icmp sgt i64 %count, 1
  %try = and i1 %helpers, %several
  br i1 %try, label %claim, label %alone
claim:
  %swap = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic, align 4
  %won = extractvalue { i32, i1 } %swap, 1
  br i1 %won, label %together, label %alone
alone:
  call void @run_alone(ptr %fn, ptr %ctx, i64 %count)
  ret void
together:
  call void @start_missing()
  store atomic ptr %fn, ptr @fn monotonic, align 8
  store atomic ptr %ctx, ptr @ctx monotonic, align 8
  br label %job
job:
  %base = phi i64 [ 0, %together ], [ %beyond, %finished ]
  %rest = sub i64 %count, %base
  %many = icmp sgt i64 %rest, ${MOST}
  %chunks = select i1 %many, i64 ${MOST}, i64 %rest
  store atomic i64 %base, ptr @base monotonic, align 8
  store atomic i64 0, ptr @done monotonic, align 8
  call void @publish(i64 %chunks)
  call void @help(i1 true)
  br label %join
join:
  %spins = phi i32 [ 0, %job ], [ %spun, %wait ], [ %spun, %yield ]
  %done = load atomic i64, ptr @done acquire, align 8
  %all = icmp eq i64 %done, %chunks
  br i1 %all, label %finished, label %wait
wait:
  ${PAUSE}
  %spun = add i32 %spins, 1
  %patient = icmp slt i32 %spun, 4000
  br i1 %patient, label %join, label %yield
yield:                                     ; another process may have the worker's core
  %yielded = call i32 @sched_yield()
  br label %join
finished:
  %beyond = add i64 %base, %chunks
  %over = icmp sge i64 %beyond, %count
  br i1 %over, label %out, label %job
out:
  store atomic i32 0, ptr @busy release, align 4
  ret void
}

; Sets the number of workers; more start at the next call, fewer means stopping all of them now.
define void @wengert_pool_resize(i32 %wanted) {
entry:
  br label %claim
claim:
  %swap = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic, align 4
  %won = extractvalue { i32, i1 } %swap, 1
  br i1 %won, label %got, label %yield
yield:
  %yielded = call i32 @sched_yield()
  br label %claim
got:
  store atomic i32 %wanted, ptr @wanted monotonic, align 4
  %running = load i32, ptr @running
  %fewer = icmp sgt i32 %running, %wanted
  br i1 %fewer, label %stop, label %out
stop:
  store atomic i32 1, ptr @stopping release, align 4
  call void @publish(i64 0)
  call void @wake_sleepers(i64 ${MAX_WORKERS})
  br label %join
join:
  %i = phi i32 [ 0, %stop ], [ %i1, %join ]
  %slot = getelementptr [${MAX_WORKERS} x i64], ptr @threads, i64 0, i32 %i
  %thread = load i64, ptr %slot
  %joined = call i32 @pthread_join(i64 %thread, ptr null)
  %i1 = add i32 %i, 1
  %more = icmp slt i32 %i1, %running
  br i1 %more, label %join, label %stopped
stopped:
  store i32 0, ptr @running
  store atomic i32 0, ptr @stopping release, align 4
  br label %out
out:
  store atomic i32 0, ptr @busy release, align 4
  ret void
}

; As if just loaded. Called once when it is, and in the child of a fork: the workers are not there,
; and whoever held @busy is not either.
define void @wengert_pool_reset() {
  %old = load atomic i64, ptr @work monotonic, align 8
  %generation = and i64 %old, -4294967296
  store atomic i64 %generation, ptr @work monotonic, align 8
  store i32 0, ptr @running
  store i32 0, ptr @stopping
  store i32 0, ptr @sleepers
  call void @reset_sleep()
  store atomic i32 0, ptr @busy release, align 4
  ret void
}

define i32 @wengert_pool_running() {
  %running = load i32, ptr @running
  ret i32 %running
}
