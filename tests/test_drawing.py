"""Pictures of graphs: what is in them, and that boxes stand in rows without overlap."""

import itertools
import xml.etree.ElementTree as ElementTree

import pytest
import wengert as torch
from wengert.drawing import draw
from wengert.placement import Box, arrange, crossings


def test_the_history_of_a_tensor():
    x = torch.ones(2, 3, requires_grad=True)
    loss = (x * 2).sin().sum()
    picture = torch.draw(loss)
    labels = [item.lines[0] for item in picture.items]
    assert labels == ["leaf", "MulBackward0", "SinBackward0", "SumBackward0", "result"]
    assert picture.items[0].lines[1] == "f32[2,3]"
    assert picture.items[1].lines[-1].startswith("test_drawing.py:")
    assert len(picture.edges) == 4


def test_a_graph_with_origins_and_writes():
    function = torch.compile(lambda x: (x.tanh() * 3).sum())
    function(torch.ones(3, requires_grad=True))
    picture = draw(function.graph("backward"))
    assert any(item.kind == "derivative" and "of tanh.0" in item.lines for item in picture.items)
    assert picture.items[-1].kind == "result"
    assert "digraph" in picture.dot
    assert repr(draw(function)).startswith("<picture of @")


def test_svg_is_xml_and_can_be_saved(tmp_path):
    x = torch.ones(2, requires_grad=True)
    picture = draw([x + 1, x * 2])
    root = ElementTree.fromstring(picture._repr_svg_())
    assert root.tag.endswith("svg")
    assert picture.save(tmp_path / "a.svg").endswith("a.svg")
    picture.save(tmp_path / "a.dot")
    assert (tmp_path / "a.dot").read_text() == picture.dot


def test_other_things_are_refused():
    with pytest.raises(TypeError, match="takes a tensor"):
        draw(["text"])


def chain_with_branches(count):
    boxes = [Box(k, 60 + k % 3 * 20, 30) for k in range(count)]
    edges = [(k // 2, k) for k in range(1, count)] + [(k, k + 7) for k in range(count - 7)]
    return boxes, edges


def test_rows_run_down_and_boxes_keep_apart():
    boxes, edges = chain_with_branches(300)
    layout = arrange(boxes, edges)
    for start, end in edges:
        assert layout.boxes[start].row < layout.boxes[end].row
    rows = {}
    for box in boxes:
        rows.setdefault(box.row, []).append(box)
    for row in rows.values():
        row.sort(key=lambda b: b.x)
        for one, two in itertools.pairwise(row):
            assert two.x - one.x >= (one.width + two.width) / 2 + 15.9
    assert all(b.x - b.width / 2 >= 0 and b.x + b.width / 2 <= layout.width for b in boxes)


def test_crossings_are_counted_and_undone():
    a, b, c, d = (Box(k, 10, 10) for k in "abcd")
    a.below, b.below = [d], [c]
    assert crossings([[a, b], [c, d]]) == 1
    boxes = [Box(k, 10, 10) for k in "abcd"]
    layout = arrange(boxes, [("a", "d"), ("b", "c")])
    ax, bx, cx, dx = (layout.boxes[k].x for k in "abcd")
    assert (ax < bx) == (dx < cx)


def test_a_weight_stands_beside_each_reader():
    """Else its edges would run through the whole picture, one for every layer."""
    w = torch.ones(2, 2)

    def layers(x):
        for _ in range(20):
            x = (x @ w).tanh()
        return x

    function = torch.compile(layers)
    function(torch.ones(2, 2))
    picture = draw(function.graph("trace"))
    layout = picture.layout()
    weights = [item for item in picture.items if "captured" in item.lines[1]]
    assert len(weights) == 20
    assert all(layout.boxes[e].row - layout.boxes[s].row == 1 for s, e, _ in picture.edges)


def test_a_chain_of_scalars_stands_above_its_reader():
    boxes = [Box(k, 10, 10) for k in ("x", "one", "two", "far", "deep", "sum")]
    edges = [("x", "far"), ("far", "deep"), ("one", "two"), ("deep", "sum"), ("two", "sum")]
    layout = arrange(boxes, edges)
    assert layout.boxes["two"].row == layout.boxes["sum"].row - 1
    assert layout.boxes["one"].row == layout.boxes["two"].row - 1
