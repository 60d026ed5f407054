"""Writes the source of a decoder for one message in one version.

The function it writes is flat: nested structs and loops are inlined, and it calls nothing in the usual case but
unpackers.

* **Runs.** Neighbouring fields of fixed size are read by one unpack, which also reads the first byte of the length (or
  the count of tagged fields) after them.
* **Optimism.** Nullable fields, fields that are usually empty, and tagged sections are read as if they were empty, in
  the same run as the fields after them. If a test finds that they are not, plain code reads again from the first of
  them. The run never reads beyond a valid message, because a value is longer than its empty form.
* **Arrays of numbers** are read by an unpacker for their length, which also reads the run after them.
* **Row memo.** If all fields of an array's struct are numbers or arrays of numbers, a row is first read with the layout
  of the row before it, in one unpack.
* **Positions** are symbolic: a base variable and a constant that is known here. `o` and `p` alternate as base.

The function does not explain errors: bad input makes it raise any exception, and the interpreter (trace.py) finds the
reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from struct import Struct as Format
from typing import Any

from ottla.wire import support
from ottla.wire.atoms import Atom, End, Fixed, Item, Var, is_number_array, is_optional, items_of, prefix
from ottla.wire.row_memo import RowMemo
from ottla.wire.shape import FIXED_FORMATS, FIXED_SIZES, DefaultStruct, FieldShape, Struct, Type
from ottla.wire.trace import Classes

NULLS_WORTH_A_TEST = 4
OFTEN_EMPTY = frozenset(
    {"OfflineReplicas", "AbortedTransactions", "RecordErrors", "EligibleLeaderReplicas", "LastKnownElr"}
)
"""Fields that are not nullable, but almost always empty: they are read optimistically."""
ROUNDS = [(), *((None,) * count for count in range(127))]
"""Compact length -> so many Nones to loop over."""


class DecoderWriter:
    """Collects the lines of one decoder, and in `env` the objects that they name."""

    def __init__(self, shape: Struct, classes: Classes) -> None:
        self.shape = shape
        self.classes = classes
        self.lines: list[str] = []
        self.first_lines: list[str] = []
        """The first lines of the function: memos are kept for all rows of a message."""
        self.depth = 2
        self.serial = 0
        self.base = "o"
        self.const = 0
        self.env: dict[str, Any] = {
            "repeat": repeat,
            "ROUNDS": ROUNDS,
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
        self.emit(f"if {self.at()} == z or (not whole and {self.at()} < z):")
        self.emit("    return m")
        head = ["def decode(b, o=0, whole=True):", "    first = o"]
        head += ["    if type(b) is not bytes:", "        b = bytes(b)", "    try:", "        z = len(b)"]
        if any("mv[" in line for line in self.lines):
            head.append("        mv = memoryview(b)")
        head += ["        " + line for line in self.first_lines]
        tail = ["    except Exception:", "        pass", "    raise explain(b, first, whole)"]
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

    def default(self, struct: Struct, member: FieldShape) -> str:
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
        """Read the atoms in order; the first one of a segment decides how it is read."""
        lead: Var | None = None
        start = 0
        while start < len(atoms):
            stop = start
            while stop < len(atoms) and (not isinstance(atoms[stop], Var) or is_optional(atoms[stop])):
                stop += 1
            hard = atoms[stop] if stop < len(atoms) else None
            assert hard is None or isinstance(hard, Var)
            self.segment(lead, atoms[start:stop], hard)
            lead = None
            if hard is not None:
                if is_number_array(hard.type):
                    self.check_count(hard)
                    lead = hard
                else:
                    self.body(hard)
            start = stop + 1
        if lead is not None:
            self.segment(lead, [], None)

    def segment(self, lead: Var | None, atoms: list[Atom], hard: Var | None) -> None:
        """Read a segment in one run, optimistically if it has optional parts, up to the length of `hard`."""
        items = [item for atom in atoms for item in items_of(atom)]
        if hard is not None:
            items += prefix(hard)
        first = next((index for index, atom in enumerate(atoms) if is_optional(atom)), None)
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
        before = sum(item.size for atom in atoms[: first + 1] for item in items_of(atom))
        start = const - sum(item.size for item in items)
        nulls = self.nullness(atoms[first:])
        if nulls:
            with self.block(f"if not ({nulls}):"):
                self.assume_null(atoms[first:])
        with self.block(f"{'elif' if nulls else 'if'} {self.emptiness(atoms)}:"):
            self.assume_empty(atoms[first:])
        with self.block("else:"):
            self.const = start + before
            self.plain(atoms[first:], hard)
            self.rejoin(base, const)

    def rejoin(self, base: str, const: int) -> None:
        """Make the position equal to that of the optimistic branch, so that the same code follows both."""
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

    def nullness(self, atoms: list[Atom]) -> str:
        """The test that a run's many compact fields are all null, as in most heartbeats; "" if it does not apply."""
        counts = []
        for atom in atoms:
            if isinstance(atom, End):
                counts += [atom.tag_count] if atom.struct.flexible else []
            elif isinstance(atom, Var):
                if atom.type.kind == "struct" or not (atom.type.compact and atom.type.nullable):
                    return ""
                counts.append(atom.length)
        return " | ".join(counts) if len(counts) >= NULLS_WORTH_A_TEST else ""

    def assume_null(self, atoms: list[Atom]) -> None:
        nulls = {atom.var: "None" for atom in atoms if isinstance(atom, Var)}
        for atom in atoms:
            if isinstance(atom, End):
                args = {attr: nulls.pop(var, var) for attr, var in atom.args.items()}
                self.make(atom._replace(args=args), with_tags=False)
        for var in nulls:  # of a struct that ends later
            self.emit(f"{var} = None")

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
        empty = {"string": "''", "array": "()"}.get(shape.kind, "b''")
        if not shape.nullable:
            return empty
        # Indexed by the length itself: 0 is null and 1 empty if compact, else -1 is null and 0 empty.
        return f"(None, {empty})[{atom.length}]" if shape.compact else f"({empty}, None)[{atom.length}]"

    def plain(self, atoms: list[Atom], hard: Var | None) -> None:
        """Read the atoms without optimism. The length of the first one has already been read."""
        items: list[Item] = []
        for index, atom in enumerate(atoms):
            items += items_of(atom)
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
            items += prefix(hard)
        self.read(None, items)

    def read(self, lead: Var | None, items: list[Item]) -> None:
        """One unpack for the items, with the numbers of `lead` before them; moves the position after them."""
        form = "".join(item.form for item in items)
        size = sum(item.size for item in items)
        if lead is not None and form == "B":  # reading one byte alone is faster than taking it off the array
            self.read_with_array(lead, [], "")
            self.emit(f"{items[0].var} = b[{self.at()}]")
        elif lead is not None:
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
        """Complete a length of several bytes, and reject null if it is not allowed, and lengths below null."""
        shape, n = atom.type, atom.length
        if shape.compact:
            self.long_length(atom)
        elif shape.nullable:
            with self.block(f"if {n} < -1:"):
                self.emit("raise Refused")
        else:
            with self.block(f"if {n} < 0:"):
                self.emit("raise Refused")
        if is_number_array(shape) and shape.element is not None and shape.element.kind == "uuid":
            # Its format is built by repetition, so the length must be plausible.
            with self.block(f"if {n} * 16 > z - {self.base} + 16:"):
                self.emit("raise Refused")

    def long_length(self, atom: Var) -> None:
        n, shape = atom.length, atom.type
        is_text = shape.kind == "string"
        test = f"{n} > 127" if shape.nullable else f"{n} > 127 or not {n}"
        helper = ("LNS" if is_text else "LV") if shape.nullable else ("LS" if is_text else "LN")
        with self.block(f"if {test}:"):
            if shape.kind == "records":
                self.records_length(n, helper)
            else:
                self.emit(f"{n}, x = {helper}(b, {self.at(-1)})")
            self.emit(f"{self.base} += x")

    def records_length(self, n: str, helper: str) -> None:
        """Read lengths of two and three bytes, from 127 B to 2 MiB, without a call: most batches are that large."""
        with self.block("if 0 < x < 128:"):
            self.emit(f"{n} += (x << 7) - 128")
            self.emit("x = 1")
        with self.block(f"elif x and 0 < b[{self.at(1)}] < 128:"):
            self.emit(f"{n} += (x << 7) + (b[{self.at(1)}] << 14) - 16512")
            self.emit("x = 2")
        with self.block("else:"):
            self.emit(f"{n}, x = {helper}(b, {self.at(-1)})")

    def null_test(self, atom: Var) -> str:
        return atom.length if atom.type.compact else f"{atom.length} >= 0"

    def text_or_bytes(self, atom: Var) -> None:
        end = "p" if self.base == "o" else "o"
        if atom.type.nullable and atom.type.compact and atom.type.kind != "records":
            self.nullable_text_or_bytes(atom, end)
        else:
            self.check_count(atom)
            if atom.type.nullable:
                with self.block(f"if {self.null_test(atom)}:"):
                    self.slice(atom, end)
                with self.block("else:"):
                    self.no_slice(atom, end)
            else:
                self.slice(atom, end)
        self.base, self.const = end, 0

    def nullable_text_or_bytes(self, atom: Var, end: str) -> None:
        """The usual case first, with one test."""
        with self.block(f"if 0 < {atom.length} < 128:"):
            self.slice(atom, end)
        with self.block("else:"):
            self.check_count(atom)
            with self.block(f"if {atom.length}:"):
                self.slice(atom, end)
            with self.block("else:"):
                self.no_slice(atom, end)

    def slice(self, atom: Var, end: str) -> None:
        start = self.at()
        form = {"string": f"b[{start}:{end}].decode()", "records": f"mv[{start}:{end}]"}
        self.emit(f"{end} = {self.at(-1 if atom.type.compact else 0)} + {atom.length}")
        self.emit(f"{atom.var} = {form.get(atom.type.kind, f'b[{start}:{end}]')}")

    def no_slice(self, atom: Var, end: str) -> None:
        self.emit(f"{end} = {self.at()}")
        self.emit(f"{atom.var} = None")

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
        rows = self.name("l")
        self.emit(f"{rows} = []")
        rounds = self.rounds(atom)
        if element.kind == "struct":
            assert element.struct is not None
            assert element.struct.min_size > 0, "a loop over structs of no size would not end with the input"
            atoms = self.atoms(element.struct, f"{rows}.append()")
            memo = RowMemo.of(self, atoms)
            if memo:
                self.first_lines.append(memo.nothing())
            with self.block(f"for _ in {rounds}:"):
                if memo:
                    memo.attempt()
                self.sequence(atoms)
                self.settle()
                if memo:
                    memo.remember()
        else:
            item = self.name("v")
            with self.block(f"for _ in {rounds}:"):
                self.sequence([Var(element, item, "n" + item[1:], often_empty=False)])
                self.emit(f"{rows}.append({item})")
                self.settle()
        self.emit(f"{atom.var} = tuple({rows})")

    def rounds(self, atom: Var) -> str:
        """The iterable of a loop: a ready-made tuple starts faster than `repeat`, and most arrays are short."""
        n = atom.length
        if atom.type.compact:
            return f"ROUNDS[{n}] if {n} < {len(ROUNDS)} else repeat(None, {n} - 1)"
        return f"ROUNDS[{n} + 1] if {n} < {len(ROUNDS) - 1} else repeat(None, {n})"

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
        """In a tagged field the marker is a varint with 0 for null: convert it to what nullable_struct expects."""
        with self.block(f"if {marker} > 127:"):
            self.emit(f"{marker}, x = LV(b, o)")
            self.emit("o += x")
        self.emit(f"{marker} -= 1")

    def unknown_var(self, end: End) -> str:
        return "u" + end.tag_count[1:]

    def tag_var(self, end: End, member: FieldShape) -> str:
        return f"w{end.tag_count[1:]}_{member.tag}"

    def make(self, end: End, *, with_tags: bool) -> None:
        args = dict(end.args)
        if with_tags:
            args |= {member.attr: self.tag_var(end, member) for member in end.struct.tagged}
            args["unknown_tags"] = self.unknown_var(end)
        call = self.make_call(end.struct, args)
        # The target of an array's element is the call that adds it.
        self.emit(f"{end.target[:-1]}{call})" if end.target.endswith("()") else f"{end.target} = {call}")

    def is_default(self, member: FieldShape | None, text: str) -> bool:
        return member is not None and member.default is None and text == "None"

    def make_call(self, struct: Struct, args: dict[str, str]) -> str:
        """The constructor with positional arguments; defaults at the end are left out."""
        members = {member.attr: member for member in (*struct.plain, *struct.tagged, *struct.absent)}
        given = [args.get(attr) for attr in struct.attrs]
        while given and (given[-1] is None or self.is_default(members.get(struct.attrs[len(given) - 1]), given[-1])):
            given.pop()
        texts = [
            text if text is not None else self.default(struct, members[attr])
            for attr, text in zip(struct.attrs, given, strict=False)
        ]
        return f"{self.class_of(struct)}({', '.join(texts)})"
