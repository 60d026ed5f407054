"""Reads a row of an array with the layout of the row before it.

If all fields of a struct are numbers or arrays of numbers, as in the partitions of a Metadata response, neighbouring
rows mostly have arrays of the same lengths. Such a row is one unpack, and its lengths are checked afterwards; a row
that differs is read by plain code, and its layout is remembered instead.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from ottla.wire import support
from ottla.wire.atoms import Atom, End, Fixed, Var, is_number_array, items_of
from ottla.wire.shape import FIXED_FORMATS, FIXED_SIZES, Struct

MEMO_COUNT_MAX = 127
"""Longest array that a remembered row may hold: its compact length is one byte."""
NO_SIZE = 1 << 62
"""The size of a row before one is remembered: larger than any input."""


class Writer(Protocol):
    """The part of the decoder's writer that is needed here."""

    env: dict[str, Any]

    def emit(self, line: str) -> None: ...

    def block(self, head: str) -> AbstractContextManager[None]: ...

    def name(self, letter: str) -> str: ...

    def make_call(self, struct: Struct, args: dict[str, str]) -> str: ...


class RowMemo:
    """Reads a row with the layout of the row before it; for structs of numbers and arrays of numbers only."""

    def __init__(self, writer: Writer, atoms: list[Atom]) -> None:
        self.writer = writer
        self.atoms = atoms
        end = atoms[-1]
        assert isinstance(end, End)
        self.end = end
        self.arrays = [atom for atom in atoms if isinstance(atom, Var)]
        number = writer.name("k")
        self.size, self.row = f"{number}size", f"{number}row"
        self.counts = [f"{number}n{index}" for index in range(len(self.arrays))]
        self.ends = [f"{number}e{index}" for index in range(len(self.arrays))]

    @classmethod
    def of(cls, writer: Writer, atoms: list[Atom]) -> RowMemo | None:
        arrays = [atom for atom in atoms if isinstance(atom, Var)]
        ends = [atom for atom in atoms if isinstance(atom, End)]
        fits = all(
            is_number_array(atom.type) and atom.type.element is not None and atom.type.element.kind != "uuid"
            for atom in arrays
        )
        nullable = any(atom.type.nullable for atom in arrays)
        return cls(writer, atoms) if arrays and fits and not nullable and len(ends) == 1 else None

    def nothing(self) -> str:
        """The line that forgets the layout."""
        return f"{self.size} = {NO_SIZE}"

    def attempt(self) -> None:
        writer, row = self.writer, "r"
        args, tests = self.layout(row)
        if self.end.struct.flexible:
            tests.append(f"not {row}[-1]")
        with writer.block(f"if o + {self.size} <= z:"):
            writer.emit(f"{row} = {self.row}(b, o)")
            with writer.block(f"if {' and '.join(tests)}:"):
                call = writer.make_call(self.end.struct, {attr: args[var] for attr, var in self.end.args.items()})
                writer.emit(f"{self.end.target[:-1]}{call})")
                writer.emit(f"o += {self.size}")
                writer.emit("continue")

    def layout(self, row: str) -> tuple[dict[str, str], list[str]]:
        """The position of each value in a row with the remembered layout, and the tests of its lengths."""
        args: dict[str, str] = {}
        tests: list[str] = []
        start, index, seen = "", 0, 0

        def place(offset: int) -> str:
            return f"{start} + {offset}" if start and offset else start or str(offset)

        for atom in self.atoms:
            if isinstance(atom, Fixed):
                args[atom.var] = f"{row}[{place(index)}]"
                index += 1
            elif isinstance(atom, Var):
                tests.append(f"{row}[{place(index)}] == {self.counts[seen]}")
                args[atom.var] = f"{row}[{place(index + 1)}:{self.ends[seen]}]"
                start, index = self.ends[seen], 0
                seen += 1
        return args, tests

    def remember(self) -> None:
        """After a row that was read by plain code: keep its layout if every length is one byte."""
        short = " and ".join(f"{atom.length} <= {MEMO_COUNT_MAX}" for atom in self.arrays)
        with self.writer.block(f"if {short}:"):
            self.keep_layout()
        with self.writer.block("else:"):
            self.writer.emit(self.nothing())

    def keep_layout(self) -> None:
        writer = self.writer
        bias = 1 if self.arrays[0].type.compact else 0
        start, index, number = "", 0, 0
        size = [str(self.fixed_size(bias))]
        for atom in self.atoms:
            index += 1
            if isinstance(atom, Var):
                assert atom.type.element is not None
                writer.emit(f"{self.counts[number]} = {atom.length}")
                writer.emit(f"{self.ends[number]} = {start}{index - bias} + {atom.length}")
                size.append(f"{FIXED_SIZES[atom.type.element.kind]} * {atom.length}")
                start, index = f"{self.ends[number]} + ", 0
                number += 1
        writer.emit(f"{self.row} = {self.readers(bias)}[{', '.join(self.counts)}]")
        writer.emit(f"{self.size} = {' + '.join(size)}")

    def fixed_size(self, bias: int) -> int:
        """The bytes of a row without its arrays' elements."""
        fixed = sum(item.size for atom in self.atoms for item in items_of(atom))
        elements = [atom.type.element for atom in self.arrays if atom.type.element]
        return fixed - bias * sum(FIXED_SIZES[element.kind] for element in elements)

    def readers(self, bias: int) -> str:
        pieces: list[str] = []
        for atom in self.atoms:
            pieces += [item.form for item in items_of(atom)]
            if isinstance(atom, Var):
                assert atom.type.element is not None
                pieces.append("*" + FIXED_FORMATS[atom.type.element.kind])
        name = f"M{bias}{''.join(pieces)}".replace("?", "t").replace("*", "_")
        if name not in self.writer.env:
            self.writer.env[name] = support.RowReaders(tuple(pieces), bias)
        return name
