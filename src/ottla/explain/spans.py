"""Labels for bytes: the interpreter's spans, and spans inside record batches.

Every byte gets exactly one label. A records field is opened: the fields of each batch's header, and of each record if
they are not compressed, get spans of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ottla.explain.batch_spans import batch_spans
from ottla.explain.page import Span
from ottla.explain.raw_span import RawSpan, value_text
from ottla.wire.compile import classes_of, message_shape
from ottla.wire.trace import trace

HUES = 8
_INDEX = re.compile(r"\[\d+\]")
_LAST_INDEX = re.compile(r"\[\d+\]$")
_ROLE_WORDS = {"value": "", "tags": "tagged fields"}


def traced_spans(name: str, version: int, data: bytes, *, at: int = 0) -> list[RawSpan]:
    """The spans of a message that begins at byte `at` of its frame. Raises WireError if the bytes do not fit."""
    traced = trace(message_shape(name, version), classes_of(name), data)
    if traced.error is not None:
        raise traced.error
    spans: list[RawSpan] = []
    for span in traced.spans:
        if span.type == "records" and span.role == "value":
            inner = batch_spans(data[span.start : span.end], span.path)
            spans += [raw._replace(start=raw.start + span.start + at, end=raw.end + span.start + at) for raw in inner]
        else:
            text = value_text(span.value, span.type, span.path.rpartition(".")[2] if span.role == "value" else "")
            spans.append(RawSpan(span.start + at, span.end + at, span.path, span.role, span.type, text))
    return spans


def labelled(raw: list[RawSpan]) -> tuple[Span, ...]:
    """Spans as a page has them: with labels and hues."""
    hues = _hues(raw)
    return tuple(
        [
            Span(
                start=span.start,
                end=span.end,
                path=span.path,
                field=_INDEX.sub("[]", span.path),
                label=label(span),
                role=span.role,
                type=span.type,
                value=span.value,
                hue=hue,
            )
            for span, hue in zip(raw, hues, strict=True)
        ]
    )


def label(span: RawSpan) -> str:
    """`Topics[0].TopicId`, `GroupId length`: the path without the message's name, and the role of the bytes."""
    _, _, inner = span.path.partition(".")
    word = _ROLE_WORDS.get(span.role, span.role)
    return f"{inner} {word}".strip() if word else inner


def _hues(raw: list[RawSpan]) -> Iterator[int]:
    """The hues, a new one for each field; the numbers of one array are one field."""
    hue = -1
    previous = ""
    for span in raw:
        field = f"{span.path} tags" if span.role == "tags" else _LAST_INDEX.sub("", span.path)
        if field != previous:
            hue = (hue + 1) % HUES
            previous = field
        yield hue
