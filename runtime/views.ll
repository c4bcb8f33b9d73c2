; Views of results and arguments, as eager makes them: the array, the storage that it shares, how it
; is seen from its base, and the nodes of the view ops. After effects.ll. Words in braces that begin with V_ are
; places in the list of views.py, N_ in those of its nodes.
;
; Invariants
; - What is made is what `look` makes of such a tensor; see `api/native_views.py`. Python makes it
;   where the tensor is not as the one that was looked at.

declare i32 @PyArray_SetBaseObject(ptr, ptr)

; The storage of a tensor, made if there is none; borrowed, null on an error.
define internal ptr @storage_of(ptr %v, ptr %base, ptr %root) {
entry:
  %slot = call i64 @number(ptr %v, i64 ${V_storage})
  %known = call ptr @field(ptr %base, i64 %slot)
  %none = icmp eq ptr %known, @None
  br i1 %none, label %make, label %yes
yes:
  ret ptr %known
make:
  %eager = call ptr @word(ptr %v, i64 ${V_eager})
  %new = call ptr @new_storage(ptr %eager, ptr %base, ptr %root)
  ret ptr %new
}

; An array that sees a part of another's memory; null on an error.
define internal ptr @array_view(ptr %v, ptr %root) {
entry:
  %record = call ptr @word(ptr %v, i64 ${V_record})
  %offset = call i64 @number(ptr %v, i64 ${V_offset})
  %descr.p = getelementptr %Record, ptr %record, i32 0, i32 3
  %nd.p = getelementptr %Record, ptr %record, i32 0, i32 5
  %dims.p = getelementptr %Record, ptr %record, i32 0, i32 6
  %strides.p = getelementptr %Record, ptr %record, i32 0, i32 7
  %descr = load ptr, ptr %descr.p
  %nd = load i32, ptr %nd.p
  %dims = load ptr, ptr %dims.p
  %strides = load ptr, ptr %strides.p
  %data = call ptr @field(ptr %root, i64 ${DATA})
  %start = getelementptr i8, ptr %data, i64 %offset
  %flags.at = getelementptr i8, ptr %root, i64 ${FLAGS}
  %flags.all = load i32, ptr %flags.at
  %flags = and i32 %flags.all, ${WRITEABLE}
  call void @Py_IncRef(ptr %descr)         ; which the next call takes over
  %array = call ptr @PyArray_NewFromDescr(ptr @ndarray, ptr %descr, i32 %nd, ptr %dims,
                                          ptr %strides, ptr %start, i32 %flags, ptr null)
  %failed = icmp eq ptr %array, null
  br i1 %failed, label %no, label %tie
tie:
  call void @Py_IncRef(ptr %root)          ; and this one
  %tied = call i32 @PyArray_SetBaseObject(ptr %array, ptr %root)
  %well = icmp eq i32 %tied, 0
  br i1 %well, label %yes, label %drop
yes:
  ret ptr %array
drop:
  call void @Py_DecRef(ptr %array)
  br label %no
no:
  ret ptr null
}

; A node of a view op whose gradients take an edge, to which it takes over the reference; null on an
; error, or where that is null.
define internal ptr @view_node(ptr %n, ptr %edge, ptr %counter, ptr %place) {
entry:
  %lost = icmp eq ptr %edge, null
  br i1 %lost, label %no, label %list
list:
  %only = alloca ptr, align 8
  store ptr %edge, ptr %only
  %edges = call ptr @tuple_of(ptr %only, i64 1)
  %poor = icmp eq ptr %edges, null
  br i1 %poor, label %no, label %new
new:
  %class = call ptr @word(ptr %n, i64 ${N_class})
  %slots = call ptr @word(ptr %n, i64 ${N_slots})
  %node = call ptr @new_object(ptr %class, ptr %slots)
  %failed = icmp eq ptr %node, null
  br i1 %failed, label %drop, label %fill
drop:
  call void @Py_DecRef(ptr %edges)
  br label %no
fill:
  %edges.slot = call i64 @number(ptr %n, i64 ${N_edges})
  call void @put(ptr %node, i64 %edges.slot, ptr %edges)
  %place.slot = call i64 @number(ptr %n, i64 ${N_place})
  call void @Py_IncRef(ptr %place)
  call void @put(ptr %node, i64 %place.slot, ptr %place)
  %sequence = call ptr @PyIter_Next(ptr %counter)
  %sequence.slot = call i64 @number(ptr %n, i64 ${N_sequence})
  call void @put(ptr %node, i64 %sequence.slot, ptr %sequence)
  %uncounted = icmp eq ptr %sequence, null
  br i1 %uncounted, label %spoilt, label %yes
yes:
  ret ptr %node
spoilt:
  call void @Py_DecRef(ptr %node)
  br label %no
no:
  ret ptr null
}

; The last node of a chain of view ops from a tensor on. Nodes with a number among `shared` are made
; once: several views are results of one op. Null on an error.
define internal ptr @view_history(ptr %v, ptr %base, ptr %shared, ptr %place) {
entry:
  %count = call i64 @number(ptr %v, i64 ${V_node_count})
  %nodes = call ptr @word(ptr %v, i64 ${V_nodes})
  %counter = call ptr @word(ptr %v, i64 ${V_counter})
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %found ]
  %parent = phi ptr [ null, %entry ], [ %node, %found ]
  %number = phi ptr [ null, %entry ], [ %out, %found ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %yes, label %one
one:
  %n = call ptr @word(ptr %nodes, i64 %k)
  %cache = call i64 @number(ptr %n, i64 ${N_shared})
  %own = icmp slt i64 %cache, 0
  br i1 %own, label %make, label %look
look:
  %cached = call ptr @word(ptr %shared, i64 %cache)
  %unknown = icmp eq ptr %cached, null
  br i1 %unknown, label %make, label %take
take:
  call void @let_go(ptr %parent)
  call void @Py_IncRef(ptr %cached)
  br label %found
make:
  %is.first = icmp eq ptr %parent, null
  br i1 %is.first, label %root, label %further
root:
  %eager = call ptr @word(ptr %v, i64 ${V_eager})
  %outer = call ptr @edge(ptr %eager, ptr %base)
  br label %new
further:
  call void @Py_IncRef(ptr %number)
  %inner = call ptr @pair(ptr %parent, ptr %number)
  br label %new
new:
  %edge = phi ptr [ %outer, %root ], [ %inner, %further ]
  %made = call ptr @view_node(ptr %n, ptr %edge, ptr %counter, ptr %place)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %no, label %keep
keep:
  br i1 %own, label %found, label %store
store:
  call void @Py_IncRef(ptr %made)
  %shared.p = getelementptr ptr, ptr %shared, i64 %cache
  store ptr %made, ptr %shared.p
  br label %found
found:
  %node = phi ptr [ %cached, %take ], [ %made, %keep ], [ %made, %store ]
  %out = call ptr @word(ptr %n, i64 ${N_out})
  %k1 = add i64 %k, 1
  br label %next
yes:
  ret ptr %parent
no:
  ret ptr null
}

; A view of a tensor; null on an error.
define internal ptr @view_of(ptr %v, ptr %base, ptr %shared, ptr %place) {
entry:
  %facts = call ptr @word(ptr %v, i64 ${V_facts})
  %usual = call i1 @as_listed(ptr %facts, ptr %base)
  br i1 %usual, label %look, label %ask
ask:
  %slowly = call ptr @word(ptr %v, i64 ${V_slowly})
  %asked = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %slowly, ptr %base, ptr null)
  ret ptr %asked
look:
  %array.slot = call i64 @number(ptr %v, i64 ${V_array})
  %root = call ptr @field(ptr %base, i64 %array.slot)
  %storage = call ptr @storage_of(ptr %v, ptr %base, ptr %root)
  %homeless = icmp eq ptr %storage, null
  br i1 %homeless, label %no, label %see
see:
  %array = call ptr @array_view(ptr %v, ptr %root)
  %blind = icmp eq ptr %array, null
  br i1 %blind, label %no, label %hold
hold:
  %record = call ptr @word(ptr %v, i64 ${V_record})
  %tensor = call ptr @wrap(ptr %record, ptr %array)
  %poor = icmp eq ptr %tensor, null
  br i1 %poor, label %no, label %share
share:
  %storage.slot = call i64 @number(ptr %v, i64 ${V_storage})
  call void @Py_IncRef(ptr %storage)
  call void @put(ptr %tensor, i64 %storage.slot, ptr %storage)
  %mark.slot = call i64 @number(ptr %v, i64 ${V_mark})
  %mark = call ptr @field(ptr %base, i64 %mark.slot)
  %marked = call i64 @number(ptr %v, i64 ${V_marked})
  %unmarked = icmp eq i64 %marked, 0
  %own.mark = select i1 %unmarked, ptr @None, ptr %mark
  call void @Py_IncRef(ptr %own.mark)
  call void @put(ptr %tensor, i64 %mark.slot, ptr %own.mark)
  %class = call ptr @word(ptr %v, i64 ${V_view_class})
  %independent = icmp eq ptr %class, null
  br i1 %independent, label %nodes, label %relate
relate:
  %slots = call ptr @word(ptr %v, i64 ${V_view_slots})
  %view = call ptr @new_object(ptr %class, ptr %slots)
  %view.slot = call i64 @number(ptr %v, i64 ${V_view})
  call void @put(ptr %tensor, i64 %view.slot, ptr %view)
  %failed = icmp eq ptr %view, null
  br i1 %failed, label %drop, label %from
from:
  %base.slot = call i64 @number(ptr %v, i64 ${V_base})
  call void @Py_IncRef(ptr %base)
  call void @put(ptr %view, i64 %base.slot, ptr %base)
  %version.slot = call i64 @number(ptr %v, i64 ${V_version})
  %version = call ptr @field(ptr %storage, i64 %version.slot)
  %seen.slot = call i64 @number(ptr %v, i64 ${V_seen})
  call void @Py_IncRef(ptr %version)
  call void @put(ptr %view, i64 %seen.slot, ptr %version)
  br label %nodes
nodes:
  %count = call i64 @number(ptr %v, i64 ${V_node_count})
  %rootless = icmp eq i64 %count, 0
  br i1 %rootless, label %yes, label %connect
connect:
  %node = call ptr @view_history(ptr %v, ptr %base, ptr %shared, ptr %place)
  %node.slot = call i64 @number(ptr %v, i64 ${V_node})
  call void @put(ptr %tensor, i64 %node.slot, ptr %node)
  %lost = icmp eq ptr %node, null
  br i1 %lost, label %drop, label %yes
yes:
  ret ptr %tensor
drop:
  call void @Py_DecRef(ptr %tensor)
  br label %no
no:
  ret ptr null
}
