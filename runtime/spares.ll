; New arrays for results, and those of earlier calls that nobody else holds any more. After
; objects.ll. A %Record may say where two such arrays are: items of a list that is ours alone.
;
; Invariants
; - An array is used again only where its reference count says that the list alone has it, it owns
;   its memory, nobody refers to it weakly, and it is as a new one would be: whoever was given it,
;   its memory or a view of it would be counted. So nobody can tell it from a new one.
; - Two are kept: a loop that gives a call its last result, or holds that until it has the next one,
;   needs two in turn.

; Whether what lies at a place may be used as a new array.
define internal i1 @is_spare(ptr %record, ptr %at) {
entry:
  %array = load ptr, ptr %at
  %none = icmp eq ptr %array, @None
  br i1 %none, label %no, label %count
count:
  %references = load i64, ptr %array
  %ours = icmp eq i64 %references, 1
  br i1 %ours, label %look, label %no
look:
  %base = call ptr @field(ptr %array, i64 ${BASE})
  %own = icmp eq ptr %base, null
  %weak = call ptr @field(ptr %array, i64 ${WEAK})
  %unseen = icmp eq ptr %weak, null
  %flags.at = getelementptr i8, ptr %array, i64 ${FLAGS}
  %flags = load i32, ptr %flags.at
  %flags.set = and i32 %flags, ${OWNED_FLAGS}
  %flags.ok = icmp eq i32 %flags.set, ${OWNED_FLAGS}
  %two = and i1 %own, %unseen
  %three = and i1 %two, %flags.ok
  br i1 %three, label %fits, label %no
fits:
  %data = call ptr @data_of(ptr %record, ptr %array)
  %as.new = icmp ne ptr %data, null
  ret i1 %as.new
no:
  ret i1 false
}

; An array that nobody has seen; null, with the exception set, if there is no memory.
define internal ptr @unseen_array(ptr %record) {
  %descr.p = getelementptr %Record, ptr %record, i32 0, i32 3
  %descr = load ptr, ptr %descr.p
  %nd.p = getelementptr %Record, ptr %record, i32 0, i32 5
  %nd = load i32, ptr %nd.p
  %dims.p = getelementptr %Record, ptr %record, i32 0, i32 6
  %dims = load ptr, ptr %dims.p
  call void @Py_IncRef(ptr %descr)         ; which the next call takes over
  %array = call ptr @PyArray_NewFromDescr(ptr @ndarray, ptr %descr, i32 %nd, ptr %dims, ptr null,
                                          ptr null, i32 0, ptr null)
  ret ptr %array
}

; A new array, or one as good as new; null, with the exception set, if there is no memory.
define internal ptr @new_array(ptr %record) {
entry:
  %places.p = getelementptr %Record, ptr %record, i32 0, i32 13
  %first = load ptr, ptr %places.p
  %never = icmp eq ptr %first, null
  br i1 %never, label %make, label %one
one:
  %one.good = call i1 @is_spare(ptr %record, ptr %first)
  br i1 %one.good, label %take, label %other
other:
  %second = getelementptr ptr, ptr %first, i64 1
  %other.good = call i1 @is_spare(ptr %record, ptr %second)
  br i1 %other.good, label %take, label %renew
take:
  %at = phi ptr [ %first, %one ], [ %second, %other ]
  %known = load ptr, ptr %at
  call void @Py_IncRef(ptr %known)
  ret ptr %known
make:
  %only = call ptr @unseen_array(ptr %record)
  ret ptr %only
renew:
  %new = call ptr @unseen_array(ptr %record)
  %poor = icmp eq ptr %new, null
  br i1 %poor, label %no, label %keep
keep:                                      ; the later one will be free first
  %before = load ptr, ptr %first
  %older = load ptr, ptr %second
  store ptr %new, ptr %first
  store ptr %before, ptr %second
  call void @Py_IncRef(ptr %new)
  call void @Py_DecRef(ptr %older)
  ret ptr %new
no:
  ret ptr null
}
