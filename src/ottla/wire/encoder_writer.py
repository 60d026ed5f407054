"""Writes the source of an encoder for one message in one version.

The function it writes collects parts in a list and joins them once. Neighbouring fields of fixed size and arrays of
numbers become one pack, whose format is cached by the arrays' lengths; strings come from a bounded cache that holds
them with their length before them. A struct without tagged fields ends with a zero byte in the same pack; the rare
other case has a branch of its own.

As in decoding, a value that cannot be written makes the function raise any exception, and the interpreter finds the
reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct as Format
from typing import Any, NamedTuple

from ottla.wire import support
from ottla.wire.shape import FIXED_FORMATS, ZERO_UUID, DefaultStruct, FieldShape, Struct, Type
from ottla.wire.trace import Classes


class PackItem(NamedTuple):
    """One value in a pack, or an array of them: then `length` names the variable with its length."""

    form: str
    expr: str
    length: str | None = None


class EncoderWriter:
    """Collects the lines of one encoder, and in `env` the objects that they name."""

    def __init__(self, shape: Struct, classes: Classes) -> None:
        self.shape = shape
        self.classes = classes
        self.lines: list[str] = []
        self.depth = 2
        self.serial = 0
        self.out = "w"
        self.parts: list[str] = []
        self.pack: list[PackItem] = []
        self.env: dict[str, Any] = {
            "Refused": support.Refused,
            "TS": support.tagged_section,
            "V": support.VARINTS,
            "L": support.LENGTHS,
            "B": support.BOOLS,
            "Z": b"\x00",
            "ZERO_UUID": ZERO_UUID,
        }

    def source(self, *, joined: bool = True) -> str:
        """The function; if not `joined`, it returns the list of parts instead of the bytes."""
        self.struct(self.shape, "m", is_last=True)
        self.flush()
        head = ["def encode(m):", "    try:", "        w = []"]
        result = "b''.join(w)" if joined else "w"
        tail = [f"        return {result}", "    except Exception:", "        pass", "    raise explain(m)"]
        return "\n".join([*head, *self.lines, *tail]) + "\n"

    # -- small tools

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.emit(head)
        self.depth += 1
        yield
        self.depth -= 1

    def name(self, letter: str) -> str:
        self.serial += 1
        return f"{letter}{self.serial}"

    def local(self, expr: str, letter: str) -> str:
        var = self.name(letter)
        self.emit(f"{var} = {expr}")
        return var

    # -- parts waiting to be added

    def close_pack(self) -> None:
        """Turn the fixed fields collected so far into one part."""
        if not self.pack:
            return
        counts = [piece.length for piece in self.pack if piece.length is not None]
        args = ", ".join(piece.expr for piece in self.pack)
        if counts:
            self.parts.append(f"{self.array_writers()}[{', '.join(counts)}]({args})")
        elif args == "0":
            self.parts.append("Z")
        else:
            self.parts.append(f"{self.packer(''.join(piece.form for piece in self.pack))}({args})")
        self.pack = []

    def packer(self, form: str) -> str:
        name = "P" + form.replace("?", "t")
        self.env[name] = Format(">" + form).pack
        return name

    def array_writers(self) -> str:
        forms: list[str] = []
        for piece in self.pack:
            if piece.length is None and forms and not forms[-1].startswith("*"):
                forms[-1] += piece.form
            else:
                forms.append(piece.form)
        is_compact = self.shape.flexible
        name = f"A{int(is_compact)}{''.join(forms)}".replace("?", "t").replace("*", "_")
        if name not in self.env:
            self.env[name] = support.ArrayWriters(tuple(forms), is_compact)
        return name

    def flush(self) -> None:
        """Add the collected parts to the output list."""
        self.close_pack()
        if len(self.parts) == 1 and not self.parts[0].startswith("*"):
            self.emit(f"{self.out}.append({self.parts[0]})")
        elif self.parts:
            self.emit(f"{self.out} += ({', '.join(self.parts)},)")
        self.parts = []

    def part(self, expr: str) -> None:
        self.close_pack()
        self.parts.append(expr)

    # -- structs

    def struct(self, shape: Struct, obj: str, *, is_last: bool) -> None:
        """`is_last`: nothing follows in this list of parts, so that the end may be written in two branches."""
        self.refuse_absent(shape, obj)
        for member in shape.plain:
            self.value(member.type, f"{obj}.{member.attr}")
        if shape.flexible:
            self.tags(shape, obj, is_last=is_last)

    def refuse_absent(self, shape: Struct, obj: str) -> None:
        """A field that this version lacks may be dropped only if it is at its default, or ignorable."""
        tests = [self.is_set(shape, member, obj) for member in shape.absent if not member.field.ignorable]
        if not shape.flexible and "unknown_tags" in shape.attrs:
            tests.append(f"{obj}.unknown_tags")
        if tests:
            with self.block(f"if {' or '.join(tests)}:"):
                self.emit("raise Refused")

    def is_set(self, struct: Struct, member: FieldShape, obj: str) -> str:
        expr = f"{obj}.{member.attr}"
        if member.default is None:
            return f"{expr} is not None"
        if member.default == ():
            return f"({expr} is None or len({expr}))"
        return f"{expr} != {self.default(struct, member)}"

    def is_default(self, struct: Struct, member: FieldShape, obj: str) -> str:
        """A quick test, which may be false for a value that equals the default."""
        operator = "is" if isinstance(member.default, DefaultStruct) or member.default is None else "=="
        return f"{obj}.{member.attr} {operator} {self.default(struct, member)}"

    def default(self, struct: Struct, member: FieldShape) -> str:
        if isinstance(member.default, DefaultStruct):
            name = f"D_{struct.class_name}_{member.attr}"
            self.env[name] = getattr(self.classes(struct.class_name)(), member.attr)
            return name
        return "ZERO_UUID" if member.default == ZERO_UUID else repr(member.default)

    def tags(self, shape: Struct, obj: str, *, is_last: bool) -> None:
        tests = [self.is_default(shape, member, obj) for member in shape.tagged]
        tests.append(f"{obj}.unknown_tags is None")
        test = " and ".join(tests)
        if is_last:
            self.last_tags(shape, obj, test)
        elif shape.tagged:
            self.flush()
            with self.block(f"if {test}:"):
                self.emit(f"{self.out}.append(Z)")
            with self.block("else:"):
                self.rare_tags(shape, obj)
        else:
            self.part(f"(Z if {test} else TS([], {obj}.unknown_tags))")

    def last_tags(self, shape: Struct, obj: str, test: str) -> None:
        parts, pack = list(self.parts), list(self.pack)
        with self.block(f"if {test}:"):
            self.pack.append(PackItem("B", "0"))
            self.flush()
        self.parts, self.pack = parts, pack
        with self.block("else:"):
            self.flush()
            self.rare_tags(shape, obj)

    def rare_tags(self, shape: Struct, obj: str) -> None:
        known = self.local("[]", "k")
        for member in shape.tagged:
            with self.block(f"if {self.is_set(shape, member, obj)}:"):
                out, self.out = self.out, self.local("[]", "w")
                self.tagged_value(member.type, f"{obj}.{member.attr}")
                self.flush()
                self.emit(f"{known}.append(({member.tag}, b''.join({self.out})))")
                self.out = out
        tags = tuple(member.tag for member in shape.tagged)
        self.emit(f"{self.out}.append(TS({known}, {obj}.unknown_tags, {tags}))")

    def tagged_value(self, shape: Type, expr: str) -> None:
        if shape.kind == "struct" and shape.nullable:
            self.nullable_struct(shape, expr, null=b"\x00", present=b"\x01")
        else:
            self.value(shape, expr)

    # -- values

    def value(self, shape: Type, expr: str) -> None:
        if shape.is_fixed:
            self.fixed(shape.kind, expr)
        elif shape.kind == "string":
            self.part(f"{self.strings(shape)}[{expr}]")
        elif shape.kind == "array":
            self.array(shape, expr)
        elif shape.kind != "struct":
            self.raw(shape, expr)
        elif shape.nullable:
            self.nullable_struct(shape, expr, null=b"\xff", present=b"\x01")
        else:
            assert shape.struct is not None
            self.struct(shape.struct, self.local(expr, "y"), is_last=False)

    def fixed(self, kind: str, expr: str) -> None:
        if kind == "uuid":
            expr = self.local(expr, "u")
            with self.block(f"if len({expr}) != 16:"):  # "16s" would pad or truncate
                self.emit("raise Refused")
        self.pack.append(PackItem(FIXED_FORMATS[kind], f"B[{expr}]" if kind == "bool" else expr))

    def strings(self, shape: Type) -> str:
        form = "COMPACT" if shape.compact else "CLASSIC"
        name = f"{form}_NULLABLE_STRINGS" if shape.nullable else f"{form}_STRINGS"
        self.env[name] = getattr(support, name)
        return name

    def raw(self, shape: Type, expr: str) -> None:
        data = self.local(expr, "d")
        if shape.kind == "records":  # the length of a view counts items, not bytes
            with self.block(f"if type({data}) is memoryview and {data}.itemsize != 1:"):
                self.emit("raise Refused")
        count = self.count(shape, data)
        self.part(f"{self.lengths(shape)}[{count}]")
        self.parts.append(f"({data} or b'')" if shape.nullable else data)

    def count(self, shape: Type, var: str) -> str:
        return self.local(f"-1 if {var} is None else len({var})" if shape.nullable else f"len({var})", "n")

    def lengths(self, shape: Type) -> str:
        return "V" if shape.compact else "L"

    def array(self, shape: Type, expr: str) -> None:
        assert shape.element is not None
        values = self.local(expr, "a")
        count = self.count(shape, values)
        held = f"({values} or ())" if shape.nullable else values
        if shape.element.is_fixed:
            self.numbers(shape, shape.element, count, held)
            return
        self.part(f"{self.lengths(shape)}[{count}]")
        if shape.element.kind == "string":
            strings = self.strings(shape.element)
            self.env[f"{strings}_get"] = self.env[strings].__getitem__
            self.parts.append(f"*map({strings}_get, {held})")
            return
        self.flush()
        row = self.name("x")
        with self.block(f"for {row} in {held}:"):
            if shape.element.kind == "struct":
                assert shape.element.struct is not None
                self.struct(shape.element.struct, row, is_last=True)
            else:
                self.value(shape.element, row)
            self.flush()

    def numbers(self, shape: Type, element: Type, count: str, held: str) -> None:
        if element.kind == "uuid":
            one = self.name("u")
            with self.block(f"for {one} in {held}:"), self.block(f"if len({one}) != 16:"):
                self.emit("raise Refused")
        length = f"V[{count}]" if shape.compact else count
        self.pack.append(PackItem("*" + FIXED_FORMATS[element.kind], f"{length}, *{held}", count))

    def nullable_struct(self, shape: Type, expr: str, *, null: bytes, present: bytes) -> None:
        assert shape.struct is not None
        obj = self.local(expr, "y")
        self.flush()
        with self.block(f"if {obj} is None:"):
            self.emit(f"{self.out}.append({null!r})")
        with self.block("else:"):
            self.emit(f"{self.out}.append({present!r})")
            self.struct(shape.struct, obj, is_last=True)
            self.flush()
