"""The atoms that a decoder reads: a message's shape, flattened into fields, lengths and the ends of structs."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ottla.wire.shape import FIXED_FORMATS, FIXED_SIZES, Struct, Type


class Fixed(NamedTuple):
    kind: str
    var: str


class Var(NamedTuple):
    """A field that begins with a length, a count or a null marker, which goes into the variable `length`."""

    type: Type
    var: str
    length: str
    often_empty: bool


class End(NamedTuple):
    """The end of a struct: its tagged section, if it has one, and the creation of the object."""

    struct: Struct
    target: str
    args: dict[str, str]
    tag_count: str


Atom: TypeAlias = "Fixed | Var | End"


class Item(NamedTuple):
    """One value of a run; `size` is how far it moves the position, 0 for a lookahead."""

    form: str
    size: int
    var: str


def is_optional(atom: Atom) -> bool:
    if isinstance(atom, Var):
        return (atom.type.nullable and atom.type.kind != "records") or atom.often_empty
    return isinstance(atom, End) and atom.struct.flexible


def is_number_array(shape: Type) -> bool:
    return shape.kind == "array" and shape.element is not None and shape.element.is_fixed


def prefix(atom: Var) -> list[Item]:
    shape = atom.type
    if shape.kind == "struct":
        return [Item("b", 1, atom.length)]
    if shape.compact and shape.kind == "records":
        # Their length usually has two bytes. There is always a second byte: at least the count of tags.
        return [Item("B", 1, atom.length), Item("B", 0, "x")]
    if shape.compact:
        return [Item("B", 1, atom.length)]
    return [Item("h", 2, atom.length) if shape.kind == "string" else Item("i", 4, atom.length)]


def items_of(atom: Atom) -> list[Item]:
    """The items that an atom adds to an optimistic run."""
    if isinstance(atom, Fixed):
        return [Item(FIXED_FORMATS[atom.kind], FIXED_SIZES[atom.kind], atom.var)]
    if isinstance(atom, Var):
        return prefix(atom)
    return [Item("B", 1, atom.tag_count)] if atom.struct.flexible else []
