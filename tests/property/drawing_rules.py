"""What is true of every drawing."""

from itertools import combinations, pairwise

from ottla.draw.layout import Box, Drawing, Frame, Line


def check_drawing(drawing: Drawing) -> None:
    check_everything_once(drawing)
    check_boxes_apart(drawing)
    check_frames(drawing)
    check_directions(drawing)
    check_lines_end_at_their_boxes(drawing)
    check_lines_pass_no_box(drawing)
    check_lines_do_not_run_together(drawing)


def check_everything_once(drawing: Drawing) -> None:
    assert sorted(box.node.id for box in drawing.boxes) == sorted(node.id for node in drawing.graph.nodes)
    assert sorted(str(line.edge) for line in drawing.lines) == sorted(map(str, drawing.graph.edges))
    assert sorted(frame.cluster.id for frame in drawing.frames) == sorted(each.id for each in drawing.graph.clusters)


def _overlap(one: Box | Frame, other: Box | Frame) -> bool:
    beside = one.x + one.width <= other.x or other.x + other.width <= one.x
    return not beside and not (one.y + one.height <= other.y or other.y + other.height <= one.y)


def check_boxes_apart(drawing: Drawing) -> None:
    for one, other in combinations(drawing.boxes, 2):
        assert not _overlap(one, other), (one, other)


def check_frames(drawing: Drawing) -> None:
    for one, other in combinations(drawing.frames, 2):
        assert not _overlap(one, other), (one, other)
    for frame in drawing.frames:
        for box in drawing.boxes:
            if box.node.cluster == frame.cluster.id:
                assert frame.x < box.x
                assert box.x + box.width < frame.x + frame.width
                assert frame.y < box.y
                assert box.y + box.height < frame.y + frame.height
            else:
                assert not _overlap(frame, box)
    for shape in (*drawing.boxes, *drawing.frames):
        assert 0 <= shape.x <= shape.x + shape.width <= drawing.width
        assert 0 <= shape.y <= shape.y + shape.height <= drawing.height


def check_directions(drawing: Drawing) -> None:
    """Down, unless the line is marked as one that goes back; and along the grid."""
    for line in drawing.lines:
        steps = list(pairwise(line.points))
        assert all((x == to_x) != (y == to_y) for (x, y), (to_x, to_y) in steps), line
        if not line.is_back:
            assert all(y <= to_y for (_, y), (_, to_y) in steps), line


def check_lines_end_at_their_boxes(drawing: Drawing) -> None:
    boxes = {box.node.id: box for box in drawing.boxes}
    for line in drawing.lines:
        source, target = boxes[line.edge.source], boxes[line.edge.target]
        (x, y), (end_x, end_y) = line.points[0], line.points[-1]
        assert y == source.y + source.height - 1
        assert source.x < x < source.x + source.width - 1
        assert end_y == target.y
        assert target.x < end_x < target.x + target.width - 1


def cells_of(line: Line) -> set[tuple[int, int]]:
    """All that a line goes through, without its two ends, which are on boxes."""
    found = set()
    for (x, y), (to_x, to_y) in pairwise(line.points):
        found |= {(at, y) for at in range(min(x, to_x), max(x, to_x) + 1)}
        found |= {(x, at) for at in range(min(y, to_y), max(y, to_y) + 1)}
    return found - {line.points[0], line.points[-1]}


def check_lines_pass_no_box(drawing: Drawing) -> None:
    inside = {
        (x, y)
        for box in drawing.boxes
        for x in range(box.x, box.x + box.width)
        for y in range(box.y, box.y + box.height)
    }
    for line in drawing.lines:
        assert not cells_of(line) & inside, line
    titles = {(x, frame.y) for frame in drawing.frames for x in range(frame.x, frame.x + 4 + len(frame.cluster.title))}
    for line in drawing.lines:
        assert not cells_of(line) & titles, line


def check_lines_do_not_run_together(drawing: Drawing) -> None:
    """Lines of different boxes may cross, but no two share a piece of their way."""
    owners: dict[object, object] = {}
    for line in drawing.lines:
        owner = (line.edge.source, line.edge.kind, line.edge if line.is_back else None)
        for (x, y), (to_x, to_y) in pairwise(line.points):
            steps = [((at, y), (at + 1, y)) for at in range(min(x, to_x), max(x, to_x))]
            steps += [((x, at), (x, at + 1)) for at in range(min(y, to_y), max(y, to_y))]
            for step in steps:
                assert owners.setdefault(step, owner) == owner, (line, owners[step])
