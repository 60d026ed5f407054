"""Writes the source of a decoder for one message in one version.

The function it writes is flat: nested structs and loops are inlined, and it calls nothing in the usual case but unpackers.

* **Runs.** Neighbouring fields of fixed size are read by one unpack, which also takes the first byte of the length (or the
  count of tagged fields) that follows them.
* **Optimism.** Nullable fields, fields that are usually empty, and tagged sections are read as if they were empty, in the same
  run as what follows. One test decides; when it fails, plain code reads again from the first of them. The run never reaches
  past a valid message, since a value that is there is longer than its empty form.
* **Arrays of numbers** come from an unpacker chosen by their length, which also reads the run behind them.
* **Row memo.** Where all fields of an array's struct are numbers or arrays of numbers, a row is first read with the layout of
  the row before it, in one unpack.
* **Positions** are symbolic: a base variable and a constant known here. `o` and `p` take turns as base.

What the function does not do is explain: bad input makes it raise anything, and the interpreter (trace.py) finds out why.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from struct import Struct as Format
from typing import Any, NamedTuple, TypeAlias

from ottla.wire import support
from ottla.wire.shape import FIXED_FORMATS, FIXED_SIZES, DefaultStruct, Member, Struct, Type
from ottla.wire.trace import Classes

OFTEN_EMPTY = frozenset(
    {"OfflineReplicas", "AbortedTransactions", "RecordErrors", "EligibleLeaderReplicas", "LastKnownElr"}
)
"""Not nullable, yet almost always empty: worth reading optimistically."""
MEMO_COUNT_MAX = 127
"""Longest array that a remembered row may hold: its compact length is one byte."""


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
    """Behind a struct's last field: its tagged section, if it has one, and the making of the object."""

    struct: Struct
    target: str
    args: dict[str, str]
    tag_count: str


Atom: TypeAlias = "Fixed | Var | End"


class Item(NamedTuple):
    """One value of a run."""

    form: str
    size: int
    var: str


def _is_optional(atom: Atom) -> bool:
    if isinstance(atom, Var):
        return atom.type.nullable or atom.often_empty
    return isinstance(atom, End) and atom.struct.flexible


def _is_number_array(shape: Type) -> bool:
    return shape.kind == "array" and shape.element is not None and shape.element.is_fixed


def _prefix(atom: Var) -> Item:
    shape = atom.type
    if shape.kind == "struct":
        return Item("b", 1, atom.length)
    if shape.compact:
        return Item("B", 1, atom.length)
    return Item("h", 2, atom.length) if shape.kind == "string" else Item("i", 4, atom.length)


def _item(atom: Atom) -> Item | None:
    """What an atom adds to an optimistic run; None for nothing."""
    if isinstance(atom, Fixed):
        return Item(FIXED_FORMATS[atom.kind], FIXED_SIZES[atom.kind], atom.var)
    if isinstance(atom, Var):
        return _prefix(atom)
    return Item("B", 1, atom.tag_count) if atom.struct.flexible else None


class DecoderWriter:
    """Collects the lines of one decoder, and in `env` the objects that they name."""

    def __init__(self, shape: Struct, classes: Classes) -> None:
        self.shape = shape
        self.classes = classes
        self.lines: list[str] = []
        self.depth = 2
        self.serial = 0
        self.base = "o"
        self.const = 0
        self.env: dict[str, Any] = {
            "repeat": repeat,
            "Refused": support.Refused,
            "LV": support.long_varint,
            "LN": support.long_length,
            "LS": support.long_string_length,
            "LNS": support.long_nullable_string_length,
            "RV": support.read_varint,
            "RU": support.read_unknown_tags,
        }

    # -- the function as a whole

    def source(self) -> str:
        self.sequence(self.atoms(self.shape, "m"))
        self.emit(f"if {self.at()} == z:")
        self.emit("    return m")
        head = ["def decode(b, o=0):", "    first = o", "    if type(b) is not bytes:", "        b = bytes(b)"]
        head += ["    try:", "        z = len(b)"]
        if any("mv[" in line for line in self.lines):
            head.append("        mv = memoryview(b)")
        tail = ["    except Exception:", "        pass", "    raise explain(b, first)"]
        return "\n".join([*head, *self.lines, *tail]) + "\n"

    # -- small tools

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.emit(head)
        self.depth += 1
        start = len(self.lines)
        yield
        if len(self.lines) == start:
            self.emit("pass")
        self.depth -= 1

    def name(self, letter: str) -> str:
        self.serial += 1
        return f"{letter}{self.serial}"

    def at(self, extra: int = 0) -> str:
        const = self.const + extra
        if not const:
            return self.base
        return f"{self.base} + {const}" if const > 0 else f"{self.base} - {-const}"

    def settle(self) -> None:
        """Make `o` alone the position, as loops need it."""
        if self.base != "o" or self.const:
            self.emit(f"o = {self.at()}")
        self.base, self.const = "o", 0

    def unpacker(self, form: str) -> str:
        name = "U" + form.replace("?", "t")
        self.env[name] = Format(">" + form).unpack_from
        return name

    def class_of(self, struct: Struct) -> str:
        self.env[struct.class_name] = self.classes(struct.class_name)
        return struct.class_name

    def default(self, struct: Struct, member: Member) -> str:
        """The default of a field as an expression; a struct's default is the one instance that its class has."""
        if not isinstance(member.default, DefaultStruct):
            return repr(member.default)
        cls = self.classes(struct.class_name)
        name = f"D_{struct.class_name}_{member.attr}"
        self.env[name] = getattr(cls(), member.attr)
        return name

    # -- from shape to atoms

    def atoms(self, struct: Struct, target: str) -> list[Atom]:
        found: list[Atom] = []
        args: dict[str, str] = {}
        for member in struct.plain:
            var = args[member.attr] = self.name("v")
            shape = member.type
            if shape.is_fixed:
                found.append(Fixed(shape.kind, var))
            elif shape.kind == "struct" and not shape.nullable:
                assert shape.struct is not None
                found += self.atoms(shape.struct, var)
            else:
                found.append(Var(shape, var, "n" + var[1:], shape.kind == "array" and member.name in OFTEN_EMPTY))
        found.append(End(struct, target, args, self.name("t")))
        return found

    # -- reading

    def sequence(self, atoms: list[Atom]) -> None:
        """Read the atoms one after another; what comes first in a segment decides how it is read."""
        lead: Var | None = None
        start = 0
        while start < len(atoms):
            stop = start
            while stop < len(atoms) and (not isinstance(atoms[stop], Var) or _is_optional(atoms[stop])):
                stop += 1
            hard = atoms[stop] if stop < len(atoms) else None
            assert hard is None or isinstance(hard, Var)
            self.segment(lead, atoms[start:stop], hard)
            lead = None
            if hard is not None:
                if _is_number_array(hard.type):
                    self.check_count(hard)
                    lead = hard
                else:
                    self.body(hard)
            start = stop + 1
        if lead is not None:
            self.segment(lead, [], None)

    def segment(self, lead: Var | None, atoms: list[Atom], hard: Var | None) -> None:
        """Read a stretch in one run, optimistically where it has optional parts, up to the length of `hard`."""
        items = [item for atom in atoms if (item := _item(atom))]
        if hard is not None:
            items.append(_prefix(hard))
        first = next((index for index, atom in enumerate(atoms) if _is_optional(atom)), None)
        self.read(lead, items)
        if first is None:
            for atom in atoms:
                if isinstance(atom, End):
                    self.make(atom, with_tags=False)
            return
        for atom in atoms[:first]:
            if isinstance(atom, End):
                self.make(atom, with_tags=False)
        base, const = self.base, self.const
        before = sum(item.size for atom in atoms[: first + 1] if (item := _item(atom)))
        start = const - sum(item.size for item in items)
        with self.block(f"if {self.emptiness(atoms)}:"):
            self.assume_empty(atoms[first:])
        with self.block("else:"):
            self.const = start + before
            self.plain(atoms[first:], hard)
            self.rejoin(base, const)

    def rejoin(self, base: str, const: int) -> None:
        """Come back to the position that the optimistic branch has, so that both go on alike."""
        if (self.base, self.const) != (base, const):
            self.const -= const
            self.emit(f"{base} = {self.at()}")
        self.base, self.const = base, const

    def emptiness(self, atoms: list[Atom]) -> str:
        """The test that all optional parts of a run are empty."""
        compact, tags, tests = [], [], []
        for atom in atoms:
            if isinstance(atom, End) and atom.struct.flexible:
                tags.append(atom.tag_count)
            elif isinstance(atom, Var) and atom.type.kind == "struct":
                tests.append(f"{atom.length} < 0")
            elif isinstance(atom, Var) and not atom.type.nullable:
                tests.append(f"{atom.length} == {1 if atom.type.compact else 0}")
            elif isinstance(atom, Var) and atom.type.compact:
                compact.append(atom.length)
            elif isinstance(atom, Var):
                tests.append(f"-1 <= {atom.length} <= 0")
        if compact:
            tests.insert(0, f"{' | '.join(compact)} < 2" if len(compact) == 1 else f"({' | '.join(compact)}) < 2")
        if tags:
            tests.append(f"not {tags[0]}" if len(tags) == 1 else f"not ({' | '.join(tags)})")
        return " and ".join(tests)

    def assume_empty(self, atoms: list[Atom]) -> None:
        for atom in atoms:
            if isinstance(atom, End):
                self.make(atom, with_tags=False)
            elif isinstance(atom, Var):
                self.emit(f"{atom.var} = {self.empty_value(atom)}")

    def empty_value(self, atom: Var) -> str:
        shape = atom.type
        if shape.kind == "struct":
            return "None"
        empty = {"string": "''", "array": "()", "records": "mv[:0]"}.get(shape.kind, "b''")
        if not shape.nullable:
            return empty
        if shape.kind == "records":
            return f"{empty} if {atom.length}{'' if shape.compact else ' == 0'} else None"
        # Indexed by the length itself: 0 is null and 1 empty if compact, else -1 is null and 0 empty.
        return f"(None, {empty})[{atom.length}]" if shape.compact else f"({empty}, None)[{atom.length}]"

    def plain(self, atoms: list[Atom], hard: Var | None) -> None:
        """Read the atoms without optimism. The length of the first one has been read."""
        items: list[Item] = []
        for index, atom in enumerate(atoms):
            if item := _item(atom):
                items.append(item)
            if isinstance(atom, Fixed):
                continue
            if index:
                self.read(None, items)
            items = []
            if isinstance(atom, Var):
                self.body(atom)
            else:
                if atom.struct.flexible:
                    self.tags(atom)
                self.make(atom, with_tags=atom.struct.flexible)
        if hard is not None:
            items.append(_prefix(hard))
        self.read(None, items)

    def read(self, lead: Var | None, items: list[Item]) -> None:
        """One unpack for the items, with the numbers of `lead` before them; the position moves behind."""
        form = "".join(item.form for item in items)
        size = sum(item.size for item in items)
        if lead is not None:
            self.read_with_array(lead, items, form)
        elif len(items) == 1 and form == "B":
            self.emit(f"{items[0].var} = b[{self.at()}]")
        elif items:
            names = ", ".join(item.var for item in items) + ("," if len(items) == 1 else "")
            self.emit(f"{names} = {self.unpacker(form)}(b, {self.at()})")
        self.const += size

    def read_with_array(self, lead: Var, items: list[Item], form: str) -> None:
        reader, step = self.array_readers(lead.type, form)
        row = self.name("r") if items else lead.var
        self.emit(f"{row} = {reader}[{lead.length}](b, {self.at()})")
        if len(items) == 1:
            self.emit(f"{lead.var} = {row}[:-1]")
            self.emit(f"{items[0].var} = {row}[-1]")
        elif items:
            self.emit(f"{lead.var} = {row}[:-{len(items)}]")
            self.emit(f"{', '.join(item.var for item in items)} = {row}[-{len(items)}:]")
        self.skip_array(lead, step)

    def skip_array(self, atom: Var, step: int) -> None:
        if atom.type.compact:
            self.const -= step
        factor = atom.length if step == 1 else f"{step} * {atom.length}"
        self.emit(f"o = {self.at()} + {factor}")
        self.base, self.const = "o", 0

    def array_readers(self, shape: Type, suffix: str) -> tuple[str, int]:
        assert shape.element is not None
        element = FIXED_FORMATS[shape.element.kind]
        bias = 1 if shape.compact else 0
        name = f"A{bias}{element}_{suffix.replace('?', 't')}"
        if name not in self.env:
            self.env[name] = support.ArrayReaders(element, suffix, bias)
        return name, FIXED_SIZES[shape.element.kind]

    # -- the bodies of fields whose length has been read

    def body(self, atom: Var) -> None:
        if atom.type.kind == "struct":
            self.nullable_struct(atom)
        elif atom.type.kind == "array":
            self.array(atom)
        else:
            self.text_or_bytes(atom)

    def check_count(self, atom: Var) -> None:
        """Complete a length of several bytes, refuse null where it may not be, and lengths below null."""
        shape, n = atom.type, atom.length
        if shape.compact:
            self.long_length(atom)
        elif shape.nullable:
            with self.block(f"if {n} < -1:"):
                self.emit("raise Refused")
        else:
            with self.block(f"if {n} < 0:"):
                self.emit("raise Refused")
        if _is_number_array(shape) and shape.element is not None and shape.element.kind == "uuid":
            # Its format is built by repetition, so the length must be believable before.
            with self.block(f"if {n} * 16 > z - {self.base} + 16:"):
                self.emit("raise Refused")

    def long_length(self, atom: Var) -> None:
        n, shape = atom.length, atom.type
        is_text = shape.kind == "string"
        test = f"{n} > 127" if shape.nullable else f"not 0 < {n} < 128"
        helper = ("LNS" if is_text else "LV") if shape.nullable else ("LS" if is_text else "LN")
        with self.block(f"if {test}:"):
            if shape.kind in ("records", "bytes"):  # lengths of two bytes are usual here
                self.emit(f"x = b[{self.at()}]")
                with self.block(f"if {n} > 127 and 0 < x < 128:"):
                    self.emit(f"{n} += (x << 7) - 128")
                    self.emit(f"{self.base} += 1")
                with self.block("else:"):
                    self.emit(f"{n}, x = {helper}(b, {self.at(-1)})")
                    self.emit(f"{self.base} += x")
            else:
                self.emit(f"{n}, x = {helper}(b, {self.at(-1)})")
                self.emit(f"{self.base} += x")

    def null_test(self, atom: Var) -> str:
        return atom.length if atom.type.compact else f"{atom.length} >= 0"

    def text_or_bytes(self, atom: Var) -> None:
        self.check_count(atom)
        end = "p" if self.base == "o" else "o"
        start = self.at()
        value = {"string": f"b[{start}:{end}].decode()", "records": f"mv[{start}:{end}]"}.get(
            atom.type.kind, f"b[{start}:{end}]"
        )
        length = f"{self.at(-1 if atom.type.compact else 0)} + {atom.length}"
        if atom.type.nullable:
            with self.block(f"if {self.null_test(atom)}:"):
                self.emit(f"{end} = {length}")
                self.emit(f"{atom.var} = {value}")
            with self.block("else:"):
                self.emit(f"{end} = {start}")
                self.emit(f"{atom.var} = None")
        else:
            self.emit(f"{end} = {length}")
            self.emit(f"{atom.var} = {value}")
        self.base, self.const = end, 0

    def array(self, atom: Var) -> None:
        self.check_count(atom)
        if not atom.type.nullable:
            self.elements(atom)
            return
        base, const = self.base, self.const
        with self.block(f"if {self.null_test(atom)}:"):
            self.elements(atom)
            self.settle()
        with self.block("else:"):
            self.base, self.const = base, const
            self.emit(f"{atom.var} = None")
            self.settle()

    def elements(self, atom: Var) -> None:
        shape = atom.type
        assert shape.element is not None
        if shape.element.is_fixed:
            reader, step = self.array_readers(shape, "")
            self.emit(f"{atom.var} = {reader}[{atom.length}](b, {self.at()})")
            self.skip_array(atom, step)
            return
        self.settle()
        with self.block(f"if {atom.length} > {1 if shape.compact else 0}:"):
            self.loop(atom, shape.element)
        with self.block("else:"):
            self.emit(f"{atom.var} = ()")

    def loop(self, atom: Var, element: Type) -> None:
        rows, add = self.name("l"), self.name("a")
        self.emit(f"{rows} = []")
        self.emit(f"{add} = {rows}.append")
        rounds = f"{atom.length} - 1" if atom.type.compact else atom.length
        if element.kind == "struct":
            assert element.struct is not None
            assert element.struct.min_size > 0, "a loop over structs of no size would not end with the input"
            atoms = self.atoms(element.struct, f"{add}()")
            memo = RowMemo.of(self, atoms)
            if memo:
                memo.prepare()
            with self.block(f"for _ in repeat(None, {rounds}):"):
                if memo:
                    memo.attempt(self.make_call)
                self.sequence(atoms)
                self.settle()
                if memo:
                    memo.remember()
        else:
            item = self.name("v")
            with self.block(f"for _ in repeat(None, {rounds}):"):
                self.sequence([Var(element, item, "n" + item[1:], often_empty=False)])
                self.emit(f"{add}({item})")
                self.settle()
        self.emit(f"{atom.var} = tuple({rows})")

    def nullable_struct(self, atom: Var) -> None:
        assert atom.type.struct is not None
        base, const = self.base, self.const
        with self.block(f"if {atom.length} >= 0:"):
            self.sequence(self.atoms(atom.type.struct, atom.var))
            self.settle()
        with self.block("else:"):
            self.base, self.const = base, const
            self.emit(f"{atom.var} = None")
            self.settle()

    # -- tagged sections and objects

    def tags(self, end: End) -> None:
        """Read the tagged section whose count has been read; it may be 0."""
        self.settle()
        struct, count = end.struct, end.tag_count
        unknown = self.unknown_var(end)
        for member in struct.tagged:
            self.emit(f"{self.tag_var(end, member)} = {self.default(struct, member)}")
        self.emit(f"{unknown} = None")
        with self.block(f"if {count}:"):
            with self.block(f"if {count} > 127:"):
                self.emit(f"{count}, x = LV(b, o - 1)")
                self.emit("o += x")
            if struct.tagged:
                self.tag_loop(end, unknown)
            else:
                self.emit(f"{unknown}, o = RU(b, o, {count})")

    def tag_loop(self, end: End, unknown: str) -> None:
        tag, size, last, stop = (self.name(letter) for letter in "gseq")
        self.emit(f"{last} = -1")
        with self.block(f"for _ in repeat(None, {end.tag_count}):"):
            self.emit(f"{tag}, o = RV(b, o)")
            self.emit(f"{size}, o = RV(b, o)")
            self.emit(f"{stop} = o + {size}")
            with self.block(f"if {tag} <= {last} or {stop} > z:"):
                self.emit("raise Refused")
            self.emit(f"{last} = {tag}")
            for member in end.struct.tagged:
                with self.block(f"if {tag} == {member.tag}:"):
                    self.tagged_value(member.type, self.tag_var(end, member))
                    self.settle()
                    with self.block(f"if o != {stop}:"):
                        self.emit("raise Refused")
                    self.emit("continue")
            with self.block(f"if {unknown} is None:"):
                self.emit(f"{unknown} = {{}}")
            self.emit(f"{unknown}[{tag}] = b[o:{stop}]")
            self.emit(f"o = {stop}")

    def tagged_value(self, shape: Type, var: str) -> None:
        if shape.is_fixed:
            self.read(None, [Item(FIXED_FORMATS[shape.kind], FIXED_SIZES[shape.kind], var)])
        elif shape.kind == "struct" and not shape.nullable:
            assert shape.struct is not None
            self.sequence(self.atoms(shape.struct, var))
        else:
            atom = Var(shape, var, self.name("n"), often_empty=False)
            self.emit(f"{atom.length} = b[o]")
            self.const = 1
            if shape.kind == "struct":
                self.tagged_null_marker(atom.length)
            self.body(atom)

    def tagged_null_marker(self, marker: str) -> None:
        """In a tagged field the marker is a varint with 0 for null: make it what nullable_struct expects."""
        with self.block(f"if {marker} > 127:"):
            self.emit(f"{marker}, x = LV(b, o)")
            self.emit("o += x")
        self.emit(f"{marker} -= 1")

    def unknown_var(self, end: End) -> str:
        return "u" + end.tag_count[1:]

    def tag_var(self, end: End, member: Member) -> str:
        return f"w{end.tag_count[1:]}_{member.tag}"

    def make(self, end: End, *, with_tags: bool) -> None:
        args = dict(end.args)
        if with_tags:
            args |= {member.attr: self.tag_var(end, member) for member in end.struct.tagged}
            args["unknown_tags"] = self.unknown_var(end)
        call = self.make_call(end.struct, args)
        # The target of an array's element is the call that adds it.
        self.emit(f"{end.target[:-1]}{call})" if end.target.endswith("()") else f"{end.target} = {call}")

    def make_call(self, struct: Struct, args: dict[str, str]) -> str:
        """The constructor with positional arguments; defaults at the end are left out."""
        members = {member.attr: member for member in (*struct.plain, *struct.tagged, *struct.absent)}
        given = [args.get(attr) for attr in struct.attrs]
        while given and given[-1] is None:
            given.pop()
        texts = [
            text if text is not None else self.default(struct, members[attr])
            for attr, text in zip(struct.attrs, given, strict=False)
        ]
        return f"{self.class_of(struct)}({', '.join(texts)})"


class RowMemo:
    """Reads a row with the layout of the row before it; for structs of numbers and arrays of numbers only."""

    def __init__(self, writer: DecoderWriter, atoms: list[Atom]) -> None:
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
    def of(cls, writer: DecoderWriter, atoms: list[Atom]) -> RowMemo | None:
        arrays = [atom for atom in atoms if isinstance(atom, Var)]
        ends = [atom for atom in atoms if isinstance(atom, End)]
        fits = all(
            _is_number_array(atom.type) and atom.type.element is not None and atom.type.element.kind != "uuid"
            for atom in arrays
        )
        nullable = any(atom.type.nullable for atom in arrays)
        return cls(writer, atoms) if arrays and fits and not nullable and len(ends) == 1 else None

    def prepare(self) -> None:
        self.writer.emit(f"{self.size} = 4611686018427387904")  # no row fits: there is none to remember yet

    def attempt(self, make_call: Any) -> None:
        writer, row = self.writer, "r"
        args, tests = self.layout(row)
        if self.end.struct.flexible:
            tests.append(f"not {row}[-1]")
        with writer.block(f"if o + {self.size} <= z:"):
            writer.emit(f"{row} = {self.row}(b, o)")
            with writer.block(f"if {' and '.join(tests)}:"):
                call = make_call(self.end.struct, {attr: args[var] for attr, var in self.end.args.items()})
                writer.emit(f"{self.end.target[:-1]}{call})")
                writer.emit(f"o += {self.size}")
                writer.emit("continue")

    def layout(self, row: str) -> tuple[dict[str, str], list[str]]:
        """Where each value of a remembered row is, and the tests that its lengths are those remembered."""
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
        """Behind a row that was read plainly: keep its layout if every length is one byte."""
        writer = self.writer
        short = " and ".join(f"{atom.length} <= {MEMO_COUNT_MAX}" for atom in self.arrays)
        with writer.block(f"if {short}:"):
            bias = 1 if self.arrays[0].type.compact else 0
            index, start, fixed = 0, "", 0
            sizes: list[str] = []
            for atom in self.atoms:
                if not isinstance(atom, Var):
                    item = _item(atom)
                    index += 1
                    fixed += item.size if item else 0
                    continue
                number = self.arrays.index(atom)
                assert atom.type.element is not None
                step = FIXED_SIZES[atom.type.element.kind]
                writer.emit(f"{self.counts[number]} = {atom.length}")
                offset = index + 1 - bias
                writer.emit(f"{self.ends[number]} = {start + ' + ' if start else ''}{offset} + {atom.length}")
                sizes.append(f"{step} * {atom.length}")
                fixed += _prefix(atom).size - step * bias
                start, index = self.ends[number], 0
            keys = ", ".join(self.counts)
            writer.emit(f"{self.row} = {self.readers(bias)}[{keys}]")
            writer.emit(f"{self.size} = {fixed} + {' + '.join(sizes)}")
        with writer.block("else:"):
            self.prepare()

    def readers(self, bias: int) -> str:
        pieces: list[str] = []
        for atom in self.atoms:
            item = _item(atom)
            if item:
                pieces.append(item.form)
            if isinstance(atom, Var):
                assert atom.type.element is not None
                pieces.append("*" + FIXED_FORMATS[atom.type.element.kind])
        name = f"M{bias}{''.join(pieces)}".replace("?", "t").replace("*", "_")
        if name not in self.writer.env:
            self.writer.env[name] = support.RowReaders(tuple(pieces), bias)
        return name
