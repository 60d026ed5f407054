"""All renderers say all that a page holds, and the terminal's never leaves its width."""

import io
import json as json_module
from collections.abc import Iterator

import msgspec
import pytest

from ottla import explain
from ottla.explain.page import ErrorPage, MessagePage, Page, PageRef, plain
from ottla.explain.render import json, markdown, terminal
from ottla.explain.render.phrases import SIZE_LEGEND, facts
from tests.unit.explain.page_list import error_pages, message_pages, page_of

NARROW = 60


def field_names(page: MessagePage) -> set[str]:
    return {row.name for block in page.diagram for row in block.rows} | {row.name for row in page.schema}


def highest_pages() -> Iterator[MessagePage]:
    for page in message_pages():
        if page.version == page.versions[-1]:
            yield page


def words(text: str) -> str:
    """The text without its line breaks, so that what was wrapped can be found."""
    return " ".join(text.split())


def test_every_renderer_shows_every_field():
    for page in message_pages():
        if page.version not in (page.versions[0], page.versions[-1]):
            continue  # what lies between is made of the same parts
        for text in (terminal.render(page), json.render(page), markdown.render(page)):
            missing = {name for name in field_names(page) if name not in text}
            assert not missing, page.title


def test_every_renderer_shows_the_whole_story():
    for page in highest_pages():
        texts = (words(terminal.render(page, 1_000)), words(markdown.render(page).replace("`", "").replace("\\", "")))
        for text in texts:
            for part in (page.summary, page.purpose, page.sender, page.previous, page.next):
                assert words(plain(part)) in text, page.title
            for row in page.errors:
                assert row.name in text
                assert words(plain(row.meaning)) in text, (page.title, row.name)
            assert page.example.caption in text
            for version in page.versions:
                assert f"v{version}" in text


def test_errors_are_shown_with_their_apis():
    for page in error_pages():
        for text in (terminal.render(page), json.render(page), markdown.render(page)):
            assert page.name in text
            assert all(use.api in text for use in page.uses)


@pytest.mark.parametrize("width", [40, NARROW, 100])
def test_no_line_is_wider_than_the_terminal(width: int):
    pages: list[Page] = [*highest_pages(), *error_pages()]
    for page in pages:
        for line in terminal.render(page, width).splitlines():
            assert len(line) <= width, (page.title, line)


def test_a_narrow_terminal_loses_the_sizes_first():
    page = page_of("ShareFetchRequest", 2)
    wide, narrow = terminal.render(page, 100), terminal.render(page, NARROW)
    assert "1+n×(…)" in wide
    assert words(SIZE_LEGEND) in words(wide)
    assert "1+n×(…)" not in narrow
    assert words(SIZE_LEGEND) not in words(narrow)
    for name in field_names(page):
        assert name in narrow
    assert "nullable" in narrow
    assert "compact string" in narrow


def test_a_narrow_terminal_still_shows_every_field():
    for page in highest_pages():
        text = terminal.render(page, NARROW)
        assert not {name for name in field_names(page) if name not in text}, page.title


def test_the_rows_of_json_are_the_pages_themselves():
    page = page_of("ShareFetchRequest", 2)
    error = explain.error_page("FENCED_MEMBER_EPOCH")
    first, second = json_module.loads(json.render([page, error]))["rows"]
    assert msgspec.convert(first, MessagePage) == page
    assert msgspec.convert(second, ErrorPage) == error
    assert first["api_key"] == 78
    assert first["example"]["value"] == page.example.value
    assert bytes.fromhex(first["example"]["hex"]) == page.example.data


def test_markdown_links_where_it_is_told_to():
    page = page_of("ShareFetchRequest", 2)
    assert "](" not in markdown.render(page)

    def link(target: PageRef) -> str:
        return f"{target.kind}/{target.name}.md"

    text = markdown.render(page, link)
    assert "[`ShareAcknowledge`](api/ShareAcknowledge.md)" in text
    assert "[`INVALID_REQUEST`](error/INVALID_REQUEST.md)" in text


def test_markdown_keeps_underscores():
    assert "\\_\\_consumer\\_offsets" in markdown.render(page_of("StreamsGroupMetadataValue", 0))


def test_markdown_tables_have_as_many_cells_as_headings():
    for page in highest_pages():
        for line in markdown.render(page).split("## Wire diagram", maxsplit=1)[0].splitlines():
            if line.startswith("|"):
                assert line.replace("\\|", "").count("|") == 5, (page.title, line)


def test_facts_in_a_few_words():
    assert facts(page_of("ShareFetchRequest", 2)) == [
        "request",
        "API key 78",
        "versions 1–2",
        "always flexible",
        "served by broker",
    ]
    assert facts(page_of("TransactionLogValue", 1)) == [
        "coordinator-value",
        "record type 0",
        "versions 0–1",
        "flexible from v1",
        "in __transaction_state",
    ]
    assert "never flexible" in facts(page_of("EndTxnMarker", 0))
    assert "v6 is unstable" in facts(page_of("InitProducerIdRequest", 6))


def printed(page: Page, **options: object) -> str:
    from rich.console import Console

    file = io.StringIO()
    terminal.print_page(page, Console(file=file, width=100, **options))  # type: ignore[arg-type]
    return file.getvalue()


def test_colours_are_only_added():
    from rich.text import Text

    page = page_of("ShareFetchRequest", 2)
    coloured = printed(page, force_terminal=True, color_system="truecolor")
    assert "\x1b[" in coloured
    stripped = "\n".join(line.rstrip() for line in Text.from_ansi(coloured).plain.splitlines())
    assert stripped.rstrip() == terminal.render(page, 100).rstrip()
    assert "\x1b[" not in printed(page, color_system=None)


def test_the_catalogue_in_every_form():
    sections = explain.catalogue()
    names = [row.name for section in sections for row in section.rows]
    lines = ["".join(piece.text for piece in line) for line in terminal.catalogue_lines(sections, NARROW)]
    assert max(map(len, lines)) <= NARROW
    for text in ("\n".join(lines), json.catalogue(sections), markdown.catalogue(sections)):
        assert not {name for name in names if name not in text}
