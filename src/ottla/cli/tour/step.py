"""The steps of the tour."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from rich.console import Console, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from ottla.explain.render.lines import Line, Styled
from ottla.explain.render.terminal import print_lines

BYTES_A_ROW = 16
LINES_SHOWN = 12


class Stage:
    """The output of a step, which also checks its claims."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.checked = 0

    def show(self, *things: RenderableType) -> None:
        self._console.print(*things)

    @property
    def width(self) -> int:
        return self._console.width

    def lines(self, lines: Iterable[Line]) -> None:
        """The first lines of a page or tree, in its colours."""
        shown = [*islice(lines, LINES_SHOWN), [Styled("…", "")]]
        if self._console.options.ascii_only:
            shown = [[piece._replace(text=_in_ascii(piece.text)) for piece in line] for line in shown]
        print_lines(shown, self._console)

    def code(self, source: str) -> None:
        """A line of Python, as a user would type it."""
        self._console.print(Syntax(source, "python", background_color="default", word_wrap=True))

    def bytes(self, data: bytes | memoryview, *, mark: int | None = None) -> None:
        """A hex dump with the byte at `mark` highlighted."""
        for row in hex_rows(bytes(data), mark):
            self._console.print(row)

    def check(self, claim: str, holds: bool) -> None:
        """Make a claim; raises AssertionError if it is false."""
        assert holds, f"a claim of the tour does not hold: {claim}"
        self.checked += 1
        mark = "ok" if self._console.options.ascii_only else "✓"
        self._console.print(Text.assemble((mark, "green"), " ", claim))


class Step(NamedTuple):
    """One step of the tour."""

    title: str
    text: str
    show: Callable[[Stage], None]


def _in_ascii(text: str) -> str:
    return text.replace("…", "...").encode("ascii", "replace").decode()


def hex_rows(data: bytes, mark: int | None = None) -> Iterator[Text]:
    """Rows of offset, bytes and printable characters."""
    for start in range(0, len(data), BYTES_A_ROW):
        row = data[start : start + BYTES_A_ROW]
        text = Text(f"  {start:04x}  ", style="dim")
        for place, byte in enumerate(row, start):
            text.append(f"{byte:02x} ", style="bold red" if place == mark else "default")
        text.append("   " * (BYTES_A_ROW - len(row)))
        text.append(" " + "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row))
        yield text
