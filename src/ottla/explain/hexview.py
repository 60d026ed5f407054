"""Annotated hex: the bytes of an example in rows, each byte in the colour of its field, with labels at the right.

Spans of one field (its length and its value, the count and the numbers of an array) form a group with one label. Each
group has rows of its own, of up to 16 bytes, so the view can be read without colours. Labels are indented by the depth
of the field; an element of an array has only its index as name, because the row with the count has just named the
array.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from ottla.explain.diagram import TAGGED_SECTION
from ottla.explain.page import Example, Span

ROW_BYTES = 16
_LAST_INDEX = re.compile(r"\[\d+\]$")
_UNCOUNTED = re.compile(r"\.Batch\[\d+\](\.Records\[\d+\])?$")


class Group(NamedTuple):
    """Neighbouring spans of one field."""

    depth: int
    label: str
    value: str
    hue: int
    spans: tuple[Span, ...]

    @property
    def start(self) -> int:
        return self.spans[0].start

    @property
    def end(self) -> int:
        return self.spans[-1].end


class Cell(NamedTuple):
    """One byte; `is_value` is false for lengths, counts and tags."""

    byte: int
    hue: int
    is_value: bool


class Row(NamedTuple):
    offset: int
    cells: tuple[Cell, ...]


def field_path(span: Span) -> str:
    """The field that a span belongs to: the numbers of an array are one field, a tagged section is its struct's."""
    return f"{span.path} tags" if span.role == "tags" else _LAST_INDEX.sub("", span.path)


def groups(example: Example) -> list[Group]:
    """The fields of the example in the order of their bytes."""
    counted = {span.path for span in example.spans if span.role == "count"}
    return [_group(tuple(spans), counted) for _, spans in groupby(example.spans, field_path)]


def _group(spans: tuple[Span, ...], counted: set[str]) -> Group:
    first = spans[0]
    if first.role == "tags":
        inside = f"{first.path}.{TAGGED_SECTION}"
        value = "" if first.value == "0" else f"×{first.value}"
    else:
        inside = field_path(first)
        value = _value(spans)
    depth, label = _placed(inside, counted)
    return Group(depth, label, value, first.hue, spans)


def _placed(path: str, counted: set[str]) -> tuple[int, str]:
    """The depth of a field, and its name at that depth.

    Elements of arrays are one deeper than the array and go by their index; batches and records, which no count
    announces, go by name and index; a struct that is no element keeps the depth and puts its name before its fields'.
    """
    message, *components = path.split(".")
    depth = 0
    label: list[str] = []
    outer = message
    for component in components[:-1]:
        outer = f"{outer}.{component}"
        if _LAST_INDEX.sub("", outer) in counted:
            depth += 1
            label = [component[component.rindex("[") :]]
        elif _UNCOUNTED.search(outer):
            depth += 1
            label = [component]
        else:
            label.append(component)
    return depth, ".".join([*label, components[-1]])


def _value(spans: tuple[Span, ...]) -> str:
    values = [span.value for span in spans if span.is_value]
    count = next((span for span in spans if span.role == "count"), None)
    if count is not None:
        # The elements of an array of structs have groups of their own; here is only their count.
        return f"[{', '.join(values)}]" if values or count.value == "0" else f"×{count.value}"
    if any(span.role == "null" for span in spans):
        return "null"
    if not values and (length := next((span.value for span in spans if span.role == "length"), None)) is not None:
        # The content of a records field has groups of its own, batch by batch.
        return "empty" if length == "0" else f"{length} bytes"
    return values[0] if values else ""


def rows(example: Example, *, row_bytes: int = ROW_BYTES) -> Iterator[tuple[Group, list[Row]]]:
    """Each field with its rows of bytes; a long one has several."""
    data = example.data
    for group in groups(example):
        cells = [Cell(data[at], span.hue, span.is_value) for span in group.spans for at in range(span.start, span.end)]
        starts = range(0, len(cells), row_bytes)
        yield group, [Row(group.start + at, tuple(cells[at : at + row_bytes])) for at in starts]
