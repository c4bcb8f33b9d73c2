; The edges of a node: where the gradients of what a call read go on to. After history.ll, whose
; words it reads.
;
; Invariants
; - A leaf whose AccumulateGrad nobody holds gets none here: `LeafFacts` has what stands for it.

; A leaf's AccumulateGrad, made if there is none; null on an error.
define internal ptr @accumulator(ptr %h, ptr %leaf, ptr %facts) {
entry:
  %slot = call i64 @number(ptr %h, i64 ${H_accumulator})
  %known = call ptr @field(ptr %facts, i64 %slot)
  %none = icmp eq ptr %known, @None
  br i1 %none, label %new, label %kind
kind:
  %weak = call i1 @has_type(ptr %known, ptr @reference)
  br i1 %weak, label %look, label %ask
ask:                                        ; a tensor that stands for a leaf (`attach_edge`)
  %told = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %known, ptr null)
  ret ptr %told
look:
  %live = call ptr @PyWeakref_GetObject(ptr %known)
  %dead = icmp eq ptr %live, @None
  br i1 %dead, label %new, label %yes
yes:
  call void @Py_IncRef(ptr %live)
  ret ptr %live
new:
  %class = call ptr @word(ptr %h, i64 ${H_leaf_class})
  %slots = call ptr @word(ptr %h, i64 ${H_leaf_slots})
  %node = call ptr @new_object(ptr %class, ptr %slots)
  %failed = icmp eq ptr %node, null
  br i1 %failed, label %no, label %refer
refer:
  %variable = call i64 @number(ptr %h, i64 ${H_variable})
  call void @Py_IncRef(ptr %leaf)
  call void @put(ptr %node, i64 %variable, ptr %leaf)
  %reference = call ptr @PyWeakref_NewRef(ptr %node, ptr null)
  %poor = icmp eq ptr %reference, null
  br i1 %poor, label %drop, label %keep
drop:
  call void @Py_DecRef(ptr %node)
  ret ptr null
keep:
  %before = call ptr @field(ptr %facts, i64 %slot)
  call void @put(ptr %facts, i64 %slot, ptr %reference)
  call void @Py_DecRef(ptr %before)
  ret ptr %node
no:
  ret ptr null
}

; `history(tensor)` of one that requires grad: the edge that its gradients take.
define internal ptr @edge(ptr %h, ptr %tensor) {
entry:
  %view.slot = call i64 @number(ptr %h, i64 ${H_view})
  %view = call ptr @field(ptr %tensor, i64 %view.slot)
  %plain = icmp eq ptr %view, @None
  br i1 %plain, label %own, label %ask
own:
  %node.slot = call i64 @number(ptr %h, i64 ${H_node})
  %node = call ptr @field(ptr %tensor, i64 %node.slot)
  %leaf = icmp eq ptr %node, @None
  br i1 %leaf, label %facts, label %result
result:
  %number.slot = call i64 @number(ptr %h, i64 ${H_number})
  %which = call ptr @field(ptr %tensor, i64 %number.slot)
  call void @Py_IncRef(ptr %node)
  call void @Py_IncRef(ptr %which)
  %inner = call ptr @pair(ptr %node, ptr %which)
  ret ptr %inner
facts:
  %leaf.slot = call i64 @number(ptr %h, i64 ${H_leaf})
  %known = call ptr @field(ptr %tensor, i64 %leaf.slot)
  %unknown = icmp eq ptr %known, @None
  br i1 %unknown, label %ask, label %end
end:
  %sum = call ptr @accumulator(ptr %h, ptr %tensor, ptr %known)
  %zero = call ptr @word(ptr %h, i64 ${H_zero})
  call void @Py_IncRef(ptr %zero)
  %outer = call ptr @pair(ptr %sum, ptr %zero)
  ret ptr %outer
ask:
  %history = call ptr @word(ptr %h, i64 ${H_history})
  %asked = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %history, ptr %tensor, ptr null)
  ret ptr %asked
}

; What stands for a leaf's AccumulateGrad, borrowed, made if there is none; null where a leaf has that
; node itself, or is none, or not known.
define internal ptr @unmade(ptr %h, ptr %tensor) {
entry:
  %view.slot = call i64 @number(ptr %h, i64 ${H_view})
  %view = call ptr @field(ptr %tensor, i64 %view.slot)
  %node.slot = call i64 @number(ptr %h, i64 ${H_node})
  %node = call ptr @field(ptr %tensor, i64 %node.slot)
  %leaf.slot = call i64 @number(ptr %h, i64 ${H_leaf})
  %facts = call ptr @field(ptr %tensor, i64 %leaf.slot)
  %whole = icmp eq ptr %view, @None
  %first = icmp eq ptr %node, @None
  %known = icmp ne ptr %facts, @None
  %both = and i1 %whole, %first
  %leaf = and i1 %both, %known
  br i1 %leaf, label %weak, label %no
weak:
  %slot = call i64 @number(ptr %h, i64 ${H_accumulator})
  %reference = call ptr @field(ptr %facts, i64 %slot)
  %never = icmp eq ptr %reference, @None
  br i1 %never, label %look, label %kind
kind:
  %usual = call i1 @has_type(ptr %reference, ptr @reference)
  br i1 %usual, label %dead, label %no
dead:
  %live = call ptr @PyWeakref_GetObject(ptr %reference)
  %gone = icmp eq ptr %live, @None
  br i1 %gone, label %look, label %no
look:
  %unmade.slot = call i64 @number(ptr %h, i64 ${H_unmade})
  %here = call ptr @field(ptr %facts, i64 %unmade.slot)
  %none = icmp eq ptr %here, @None
  br i1 %none, label %make, label %yes
yes:
  ret ptr %here
make:
  %class = call ptr @word(ptr %h, i64 ${H_unmade_class})
  %slots = call ptr @word(ptr %h, i64 ${H_unmade_slots})
  %new = call ptr @new_object(ptr %class, ptr %slots)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %poor, label %keep
keep:
  call void @replace(ptr %facts, i64 %unmade.slot, ptr %new)
  ret ptr %new
poor:
  call void @PyErr_Clear()                 ; the node itself will tell
  br label %no
no:
  ret ptr null
}

; Whether a tuple has what stands for the AccumulateGrad of each of these tensors.
define internal i1 @stand_for(ptr %h, ptr %tuple, ptr %tensors, i64 %count) {
entry:
  %wanted = call ptr @word(ptr %h, i64 ${H_wanted})
  %none = icmp eq ptr %tuple, @None
  br i1 %none, label %no, label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %one ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %yes, label %one
one:
  %at = call i64 @number(ptr %wanted, i64 %k)
  %tensor = call ptr @word(ptr %tensors, i64 %at)
  %unmade = call ptr @unmade(ptr %h, ptr %tensor)
  %last = call ptr @item(ptr %tuple, i64 %k)
  %same = icmp eq ptr %unmade, %last
  %k1 = add i64 %k, 1
  br i1 %same, label %next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; A tuple of edges, or of what stands for them, and how many of the latter; null on an error.
define internal { ptr, i64 } @edges_of(ptr %h, ptr %tensors, i64 %count) {
entry:
  %wanted = call ptr @word(ptr %h, i64 ${H_wanted})
  %edges = alloca ptr, i64 %count, align 16
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %kept ]
  %left = phi i64 [ 0, %entry ], [ %left.now, %kept ]
  %end = icmp eq i64 %k, %count
  br i1 %end, label %all, label %one
one:
  %at = call i64 @number(ptr %wanted, i64 %k)
  %tensor = call ptr @word(ptr %tensors, i64 %at)
  %unmade = call ptr @unmade(ptr %h, ptr %tensor)
  %must = icmp eq ptr %unmade, null
  br i1 %must, label %make, label %leave
leave:
  call void @Py_IncRef(ptr %unmade)
  %left1 = add i64 %left, 1
  br label %kept
make:
  %edge = call ptr @edge(ptr %h, ptr %tensor)
  %failed = icmp eq ptr %edge, null
  br i1 %failed, label %drop, label %kept
kept:
  %item = phi ptr [ %unmade, %leave ], [ %edge, %make ]
  %left.now = phi i64 [ %left1, %leave ], [ %left, %make ]
  %to = getelementptr ptr, ptr %edges, i64 %k
  store ptr %item, ptr %to
  %k1 = add i64 %k, 1
  br label %next
all:
  %tuple = call ptr @tuple_of(ptr %edges, i64 %count)
  %half = insertvalue { ptr, i64 } poison, ptr %tuple, 0
  %whole = insertvalue { ptr, i64 } %half, i64 %left, 1
  ret { ptr, i64 } %whole
drop:
  call void @release(ptr %edges, i64 %k)
  ret { ptr, i64 } zeroinitializer
}

; Gives a new node its edges, or what stands for them: the tuple of the last call where that will do.
; False on an error.
define internal i1 @keep_edges(ptr %h, ptr %tensors, ptr %node) {
entry:
  %count = call i64 @number(ptr %h, i64 ${H_wanted_count})
  %unmade.slot = call i64 @number(ptr %h, i64 ${H_unmade_slot})
  %last = call ptr @word(ptr %h, i64 ${H_last})
  %last.slot = call i64 @number(ptr %h, i64 ${H_last_slot})
  %known = call ptr @field(ptr %last, i64 %last.slot)
  %same = call i1 @stand_for(ptr %h, ptr %known, ptr %tensors, i64 %count)
  br i1 %same, label %again, label %new
again:
  call void @Py_IncRef(ptr %known)
  call void @replace(ptr %node, i64 %unmade.slot, ptr %known)
  br label %yes
new:
  %made = call { ptr, i64 } @edges_of(ptr %h, ptr %tensors, i64 %count)
  %tuple = extractvalue { ptr, i64 } %made, 0
  %left = extractvalue { ptr, i64 } %made, 1
  %failed = icmp eq ptr %tuple, null
  br i1 %failed, label %no, label %which
which:
  %whole = icmp eq i64 %left, 0
  br i1 %whole, label %edges, label %unmade
edges:
  %edges.slot = call i64 @number(ptr %h, i64 ${H_edges_slot})
  call void @put(ptr %node, i64 %edges.slot, ptr %tuple)
  br label %yes
unmade:
  call void @replace(ptr %node, i64 %unmade.slot, ptr %tuple)
  %all = icmp eq i64 %left, %count
  br i1 %all, label %remember, label %yes
remember:
  call void @Py_IncRef(ptr %tuple)
  call void @replace(ptr %last, i64 %last.slot, ptr %tuple)
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}
