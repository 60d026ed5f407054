"""Pages in the terminal: coloured, and never wider than the terminal.

Pages are laid out as styled lines (`lines`). rich turns styles into colours; it is imported when a page is printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.explain import hexview
from ottla.explain.page import (
    Block,
    CatalogueSection,
    DiagramRow,
    ErrorPage,
    ErrorRow,
    MessagePage,
    Page,
    SchemaRow,
)
from ottla.explain.render.lines import (
    Line,
    Styled,
    columns,
    fitted,
    hanging_indent,
    indented,
    json_lines,
    merged,
    prose,
    width_of,
    wrapped,
)
from ottla.explain.render.phrases import SIZE_LEGEND, STORY_WORDS, facts, unchanged

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_DEFAULT = 100
WIDTH_MIN = 40
INDENT = 2
GAP = 2
LABEL_WIDTH_MIN = 24
"""If labels have less room than this, the rows of bytes become shorter."""
ROW_BYTES_MIN = 4
TYPE_WIDTH_MIN = 16
OFFSET_WIDTH = 4
ALL_COLUMNS = 4
"""Name, type, size and marks of a diagram's row."""
# Colours of medium brightness, readable on light and dark backgrounds; rich finds the nearest of 16 if a terminal has
# no more.
BLUE, ORANGE, GREEN, PINK, TEAL, RED, VIOLET, OCHRE = (f"color({n})" for n in (33, 172, 34, 170, 37, 167, 99, 136))
STYLES = {
    "title": f"bold {TEAL}",
    "heading": "bold",
    "name": "bold",
    "type": TEAL,
    "mark": "dim",
    "dim": "dim",
    "warn": ORANGE,
    "link": "underline",
    "code": PINK,
    "string": GREEN,
    "number": BLUE,
    "added": GREEN,
    "removed": RED,
    "changed": ORANGE,
}
HUES = (BLUE, ORANGE, GREEN, PINK, TEAL, RED, VIOLET, OCHRE)
CHANGE_SIGNS = {"added": "+", "removed": "−", "changed": "~"}


def print_page(page: Page, console: Console) -> None:
    """Print a page in the width and with the colours of the console."""
    print_lines(page_lines(page, console.width), console)


def print_lines(lines: list[Line], console: Console) -> None:
    from rich.segment import Segment, Segments
    from rich.style import Style

    styles = {name: Style.parse(text) for name, text in STYLES.items()}
    for hue, colour in enumerate(HUES):
        styles[f"hue{hue}"] = Style.parse(f"bold {colour}")
        styles[f"faint{hue}"] = Style.parse(f"dim {colour}")
    segments = []
    for line in lines:
        segments += [Segment(text, styles.get(style)) for text, style in merged(line)]
        segments.append(Segment.line())
    console.print(Segments(segments), end="", soft_wrap=True)


def render(page: Page, width: int = WIDTH_DEFAULT) -> str:
    """A page as plain text."""
    lines = page_lines(page, width)
    return "\n".join("".join(piece.text for piece in line).rstrip() for line in lines) + "\n"


def page_lines(page: Page, width: int) -> list[Line]:
    width = max(width, WIDTH_MIN)
    if isinstance(page, ErrorPage):
        return _error_page(page, width)
    return _message_page(page, width)


# --- messages ---------------------------------------------------------------------------------------------------------


def _message_page(page: MessagePage, width: int) -> list[Line]:
    sections = [
        _title(page, width),
        _story(page, width),
        _errors(page.errors, width),
        _diagram(page.diagram, width),
        _schema(page.schema, width),
        _example(page, width),
        _versions(page, width),
    ]
    lines: list[Line] = []
    for section in sections:
        if section:
            lines += [*section, []]
    return lines


def _rule(title: str, width: int) -> list[Line]:
    """A line across the page with a title in it; a title that is too long has no line."""
    rest = width - len(title) - 4
    if rest < 1:
        return wrapped([Styled(title, "title")], width)
    return [[Styled("── ", "mark"), Styled(title, "title"), Styled(f" {'─' * rest}", "mark")]]


def _heading(text: str) -> Line:
    return [Styled(text, "heading")]


def _title(page: MessagePage, width: int) -> list[Line]:
    return [
        *_rule(page.title, width),
        *wrapped(prose(page.summary), width),
        *wrapped([Styled(" · ".join(facts(page)), "dim")], width),
    ]


def _story(page: MessagePage, width: int) -> list[Line]:
    lines: list[Line] = []
    for word, text in zip(STORY_WORDS, (page.purpose, page.sender, page.previous, page.next), strict=True):
        if text:
            lines += hanging_indent([Styled(word, "name")], prose(text), width, 9)
    return lines


def _errors(errors: Sequence[ErrorRow], width: int) -> list[Line]:
    if not errors:
        return []
    lines = [_heading("Related errors")]
    for row in errors:
        marks = [mark for mark, holds in (("retriable", row.retriable), ("reserved", row.reserved)) if holds]
        head = [
            Styled(" " * INDENT),
            Styled(f"{row.code:>3}", "code"),
            Styled(" "),
            Styled(row.name, "dim" if row.reserved else "name"),
        ]
        if marks:
            head.append(Styled(f" ({', '.join(marks)})", "warn" if row.reserved else "dim"))
        lines += fitted(head, width)
        lines += indented(wrapped(prose(row.meaning, "dim" if row.reserved else ""), width - 6), 6)
    return lines


def _diagram(blocks: Sequence[Block], width: int) -> list[Line]:
    rows = [row for block in blocks for row in block.rows]
    widths = _diagram_widths(rows, width - INDENT)
    lines = [_heading("Wire diagram")]
    if len(widths) == ALL_COLUMNS:
        lines += indented(wrapped([Styled(SIZE_LEGEND, "dim")], width - INDENT), INDENT)
    for block in blocks:
        flexible = " · flexible" if block.flexible else ""
        lines += indented(wrapped([Styled(block.title, "title"), Styled(flexible, "dim")], width - INDENT), INDENT)
        cells = [_diagram_cells(row, widths) for row in block.rows]
        lines += indented(columns(cells, widths, GAP), INDENT)
    return lines


def _diagram_widths(rows: Sequence[DiagramRow], width: int) -> list[int]:
    """Widths of name, type, size and marks. If they do not fit, the size is left out, then marks join the type, and at
    last both go below the name.
    """
    name = max(2 * row.depth + len(row.name) for row in rows) + INDENT
    kind = max(len(row.type) for row in rows)
    size = max(len(row.size) for row in rows)
    marks = max((len(", ".join(row.marks)) for row in rows), default=0)
    if name + kind + size + marks + 3 * GAP <= width:
        return [name, kind, size, max(marks, 1)]
    kind, marks = min(kind, 26), min(marks, 16)
    if name + kind + size + marks + 3 * GAP <= width:
        return [name, kind, size, max(marks, 1)]
    if name + kind + marks + 2 * GAP <= width:
        return [name, kind, max(marks, 1)]
    return [name, width - name - GAP] if width - name - GAP >= TYPE_WIDTH_MIN else [width]


def _diagram_cells(row: DiagramRow, widths: Sequence[int]) -> list[list[Line]]:
    name: Line = [Styled(" " * (INDENT + 2 * row.depth)), Styled(row.name, "dim" if row.is_tagged_section else "name")]
    kind = [Styled(row.type, "type")]
    marks = [Styled(", ".join(row.marks), "warn")]
    if len(widths) == ALL_COLUMNS:
        return [[name], wrapped(kind, widths[1]), [[Styled(row.size)]], wrapped(marks, widths[3])]
    if len(widths) == ALL_COLUMNS - 1:
        return [[name], wrapped(kind, widths[1]), wrapped(marks, widths[2])]
    both = [*kind, Styled(" "), *marks]
    if len(widths) == 1:  # so narrow that type and marks go below the name
        return [[name, *indented(wrapped(both, widths[0] - 2 * INDENT - 2 * row.depth), 2 * INDENT + 2 * row.depth)]]
    return [[name], wrapped(both, widths[1])]


def _schema(rows: Sequence[SchemaRow], width: int) -> list[Line]:
    if not rows:
        return []
    lines = [_heading("Schema")]
    for row in rows:
        indent = INDENT * (row.depth + 1)
        head = [Styled(f"{row.name}: ", "name"), Styled(row.signature, "type")]
        about = prose(row.about)
        oneliner = [Styled(" " * indent), *head, Styled("  -- ", "mark"), *about]
        if about and width_of(oneliner) <= width:
            lines.append(oneliner)
        else:
            lines += indented(wrapped(head, width - indent), indent)
            lines += indented(wrapped(about, width - indent - 4), indent + 4) if about else []
    return lines


def _example(page: MessagePage, width: int) -> list[Line]:
    example = page.example
    lines = [_heading("Example")]
    if example.caption:
        lines += indented(wrapped([Styled(example.caption)], width - INDENT), INDENT)
    lines += indented(json_lines(example.value, width - INDENT), INDENT)
    what = "with size and header" if example.header else "as stored" if example.body_at else "as they are"
    lines += [[], _heading(f"Bytes ({len(example.data)}, {what})")]
    return lines + indented(hex_lines(page, width - INDENT), INDENT)


def hex_lines(page: MessagePage, width: int) -> list[Line]:
    """Offset, bytes, label and value; long values continue below."""
    row_bytes = hexview.ROW_BYTES
    while row_bytes > ROW_BYTES_MIN and width < OFFSET_WIDTH + 3 * row_bytes + 2 * GAP + LABEL_WIDTH_MIN:
        row_bytes //= 2
    label_at = OFFSET_WIDTH + GAP + 3 * row_bytes - 1 + GAP
    lines: list[Line] = []
    for group, rows in hexview.rows(page.example, row_bytes=row_bytes):
        indent = min(2 * group.depth, max(width - label_at - LABEL_WIDTH_MIN, 0))
        label = [Styled(group.label, f"hue{group.hue}"), Styled(f" {group.value}")]
        labels = indented(wrapped(label, width - label_at - indent), indent)
        lines += columns([([_hex_line(row) for row in rows], labels)], (label_at - GAP, width - label_at), GAP)
    return lines


def _hex_line(row: hexview.Row) -> Line:
    line: Line = [Styled(f"{row.offset:0{OFFSET_WIDTH}x}", "dim"), Styled(" " * (GAP - 1))]
    for cell in row.cells:
        line += [Styled(" "), Styled(f"{cell.byte:02x}", f"{'hue' if cell.is_value else 'faint'}{cell.hue}")]
    return line


def _versions(page: MessagePage, width: int) -> list[Line]:
    lines = [_heading("Versions")]
    for row in page.version_rows:
        marks = [
            mark
            for mark, holds in (("shown here", row.shown), ("flexible", row.flexible), ("unstable", row.unstable))
            if holds
        ]
        head = [Styled(" " * INDENT), Styled(f"v{row.version}", "name")]
        lines.append([*head, Styled(f"  {', '.join(marks)}", "dim")] if marks else head)
        for note in row.notes:
            lines += indented(wrapped(prose(note), width - 6), 6)
        for change in row.changes:
            path = change.path.removeprefix(f"{page.message}.")
            sign = [Styled(" " * 6), Styled(CHANGE_SIGNS[change.kind], change.kind)]
            body = [Styled(path, change.kind), Styled(f": {change.detail}", "dim")]
            lines += hanging_indent(sign, body, width, 8)
        if not row.notes and not row.changes:
            lines += indented(wrapped([Styled(unchanged(page, row), "dim")], width - 6), 6)
    return lines


# --- errors and the list of pages -------------------------------------------------------------------------------------


def _error_page(page: ErrorPage, width: int) -> list[Line]:
    retriable = "retriable" if page.retriable else "not retriable"
    exception = f" · Java clients raise {page.exception}" if page.exception else ""
    lines = [
        *_rule(page.title, width),
        *wrapped([Styled(f"error code {page.code} · {retriable}{exception}", "dim")], width),
        *hanging_indent([Styled("Means", "name")], prose(page.meaning), width, 9),
        *hanging_indent([Styled("Do", "name")], prose(page.remedy), width, 9),
        [],
    ]
    if page.uses or page.general:
        lines.append(_heading("APIs that answer with it"))
    if page.general:
        what = "Every API may; these say more about it:" if page.uses else "Every API may."
        lines += indented(wrapped([Styled(what)], width - INDENT), INDENT)
    for use in page.uses:
        head = [Styled(" " * INDENT), Styled(f"{use.api_key:>3}", "code"), Styled(" "), Styled(use.api, "link")]
        if use.reserved:
            head.append(Styled(" (reserved)", "warn"))
        lines += [*fitted(head, width), *indented(wrapped(prose(use.meaning), width - 6), 6)]
    return [*lines, []]


def catalogue_lines(sections: Sequence[CatalogueSection], width: int) -> list[Line]:
    """All pages, one line or a few for each."""
    width = max(width, WIDTH_MIN)
    name_width = min(max(len(row.name) for section in sections for row in section.rows), max(width // 3, 24))
    lines: list[Line] = []
    for section in sections:
        lines += _rule(section.title, width)
        for row in section.rows:
            key = "" if row.api_key is None else str(row.api_key)
            head = [Styled(f"{key:>4} ", "code"), Styled(row.name, "name")]
            lines += hanging_indent(head, [Styled(row.summary)], width, 5 + name_width + GAP)
        lines.append([])
    return lines
