"""Hypothesis strategies for messages, made from their shapes."""

from __future__ import annotations

from hypothesis import strategies as st

from ottla.wire.shape import INTEGER_LIMITS, Struct, Type
from ottla.wire.trace import Classes

# Lengths at which a varint grows are worth more than others.
_SIZES = st.sampled_from([0, 1, 2, 5, 126, 127, 128, 129])
_TEXT = st.one_of(st.text(max_size=12), _SIZES.map(lambda size: "x" * size))
_BYTES = st.one_of(st.binary(max_size=12), _SIZES.map(bytes))


def messages(shape: Struct, classes: Classes) -> st.SearchStrategy[object]:
    members = {member.attr: values(member.type, classes) for member in (*shape.plain, *shape.tagged)}
    if shape.flexible:
        known = {member.tag for member in shape.tagged}
        tags = st.integers(0, (1 << 31) - 2).filter(lambda tag: tag not in known)
        unknown = st.dictionaries(tags, _BYTES, min_size=1, max_size=3)
        members["unknown_tags"] = st.one_of(st.none(), st.none(), st.none(), unknown)
    return st.builds(classes(shape.class_name), **members)


def values(shape: Type, classes: Classes) -> st.SearchStrategy[object]:
    found = _present(shape, classes)
    return st.one_of(st.none(), found) if shape.nullable else found


def _present(shape: Type, classes: Classes) -> st.SearchStrategy[object]:
    if shape.kind in INTEGER_LIMITS:
        return st.integers(*INTEGER_LIMITS[shape.kind])
    if shape.kind == "struct":
        assert shape.struct is not None
        return messages(shape.struct, classes)
    if shape.kind == "array":
        return _arrays(shape, classes)
    return {
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False),
        "uuid": st.binary(min_size=16, max_size=16),
        "string": _TEXT,
        "bytes": _BYTES,
        "records": _BYTES,
    }[shape.kind]


def _arrays(shape: Type, classes: Classes) -> st.SearchStrategy[object]:
    assert shape.element is not None
    element = values(shape.element, classes)
    if not shape.element.is_fixed:
        return st.lists(element, max_size=4).map(tuple)
    long = st.tuples(element, _SIZES).map(lambda pair: (pair[0],) * pair[1])
    return st.one_of(st.lists(element, max_size=4).map(tuple), long)
