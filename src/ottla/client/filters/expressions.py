"""The expressions of a filter: closures that take a record as a row and return a value."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

Row = Mapping[str, Any]
"""A record by the first words of paths: `key`, `value`, `headers`, `partition` and so on."""
Step = Callable[[Row], Any]
"""One node of a filter's tree."""
Filter = Callable[[Row], bool]

_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def constant(value: object) -> Step:
    return lambda row: value


def path(root: str, rest: Sequence[str | int]) -> Step:
    """What stands at a place of the record; None if there is no such place."""

    def find(row: Row) -> Any:  # noqa: ANN401
        found = row.get(root)
        for part in rest:
            if isinstance(found, Mapping) and isinstance(part, str):
                found = found.get(part)
            elif isinstance(found, Sequence) and isinstance(part, int) and not isinstance(found, str):
                found = found[part] if part < len(found) else None
            else:
                return None
        return found

    return find


def all_of(steps: Sequence[Step]) -> Step:
    return lambda row: all(step(row) for step in steps)


def any_of(steps: Sequence[Step]) -> Step:
    return lambda row: any(step(row) for step in steps)


def negated(inner: Step) -> Step:
    return lambda row: not inner(row)


def compared(sign: str, left: Step, right: Step) -> Step:
    if sign in ("==", "!="):
        return lambda row: _is_same(left(row), right(row)) is (sign == "==")
    order = _ORDERS[sign]

    def ordered(row: Row) -> bool:
        one, other = _alike(left(row), right(row))
        if _is_number(one) and _is_number(other):
            return order(one, other)
        return isinstance(one, str) and isinstance(other, str) and order(one, other)

    return ordered


def one_of(left: Step, choices: Sequence[Step]) -> Step:
    return lambda row: any(_is_same(left(row), choice(row)) for choice in choices)


def found(left: Step, search: Callable[[str], object]) -> Step:
    """Whether a regular expression is found in a text; numbers are texts here, too."""

    def look(row: Row) -> bool:
        value = left(row)
        if _is_number(value):
            value = str(value)
        return isinstance(value, str) and search(value) is not None

    return look


def _is_same(one: object, other: object) -> bool:
    one, other = _alike(one, other)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return one == other


def _alike(one: object, other: object) -> tuple[Any, Any]:
    """A text that is compared with a number is read as one, if it says one."""
    if isinstance(one, str) and _is_number(other):
        return _number(one), other
    if isinstance(other, str) and _is_number(one):
        return one, _number(other)
    return one, other


def _number(text: str) -> object:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
