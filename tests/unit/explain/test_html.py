"""Pages in HTML: whole, safe, without anything from elsewhere, and with the same names on bytes, tree and rows."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

import msgspec
import pytest

from ottla import explain
from ottla.explain.page import MessagePage, Page, PageRef, ProsePiece, plain
from ottla.explain.render import html, html_bytes
from ottla.explain.render.html_diagram import type_family
from ottla.explain.render.html_parts import PageLinks
from tests.unit.explain.html_reader import Tag, read, tags
from tests.unit.explain.page_list import error_pages, message_pages, page_of

NOWHERE = PageLinks(lambda ref: None)
HOSTILE = '</p><script>alert("x")</script> & <img src=x onerror=alert(1)>'


def everywhere(ref: PageRef) -> str:
    return f"{ref.kind}-{ref.name}-{ref.part}-{ref.version}"


@cache
def articles() -> tuple[tuple[MessagePage, Tag], ...]:
    """Each message's page in its highest version, read back once for all tests."""
    pages = [page for page in message_pages() if page.version == page.versions[-1]]
    return tuple((page, read(html.article(page, PageLinks(everywhere)))) for page in pages)


def test_every_page_is_well_formed():
    pages: list[Page] = [*message_pages(), *error_pages()]
    assert len(pages) > 850
    for page in pages:
        names = [name for name, _ in tags(html.article(page, NOWHERE))]  # asserts that all are closed in order
        assert names[0] == "article"


def test_the_quick_look_at_tags_sees_what_the_parser_sees():
    for page in message_pages()[::50]:
        text = html.article(page, PageLinks(everywhere))
        parsed = [tag for tag in read(text).walk() if tag.name]
        assert [name for name, _ in tags(text)] == [tag.name for tag in parsed]


@pytest.mark.parametrize(
    "text", ["<p>", "<p></b>", "<p>a < b</p>", "<p>a > b</p>", "</p>", '<p title="<">x</p>', "<P></P>"]
)
def test_what_is_not_well_formed_is_noticed(text: str):
    with pytest.raises((AssertionError, IndexError)):
        list(tags(text))


def test_every_field_is_named():
    for page, document in articles():
        diagram = {tag.text for tag in document.with_class("cell-head") for tag in tag.with_class("n")}
        assert diagram >= {row.name for block in page.diagram for row in block.rows}, page.title
        fields = {tag.text for table in document.with_class("fields") for tag in table.with_class("n")}
        assert fields == {row.name for row in page.schema}, page.title


def test_everything_that_is_told_is_there():
    for page, document in articles():
        text = document.text
        for part in (page.summary, page.purpose, page.sender, page.previous, page.next):
            assert plain(part) in text, page.title
        for row in page.errors:
            assert row.name in text
            assert plain(row.meaning) in text
        assert page.example.caption in text
        for block in page.diagram:
            assert block.title in text
            assert all(mark in text for row in block.rows for mark in row.marks)
        assert all(plain(row.about) in text for row in page.schema)
        assert all(f"v{version}" in text for version in page.versions)


def test_reserved_and_retriable_errors_are_marked():
    document = read(html.article(page_of("ShareFetchRequest", 2), NOWHERE))
    rows = {
        row.named("code")[0].text: row.text for row in document.find(lambda tag: tag.name == "tr") if row.named("code")
    }
    assert "reserved" in rows["FENCED_STATE_EPOCH"]
    assert "retriable" in rows["SHARE_SESSION_NOT_FOUND"]
    assert "retriable" not in rows["INVALID_REQUEST"]
    assert "any API" in rows["UNKNOWN_SERVER_ERROR"]


def test_structs_are_boxes_around_their_fields():
    document = read(html.article(page_of("ShareFetchRequest", 2), NOWHERE))
    (batches,) = [
        cell for cell in document.with_class("nest") if cell.with_class("n")[0].text == "AcknowledgementBatches"
    ]
    assert [tag.text for tag in batches.with_class("n")[1:]] == [
        "FirstOffset",
        "LastOffset",
        "AcknowledgeTypes",
        "tagged fields",
    ]
    assert "many" in batches.classes
    titles = [block.named("h3")[0].text for block in document.with_class("block")]
    assert [title.split()[0] for title in titles] == ["Frame", "RequestHeader", "ShareFetchRequest"]


# --- the example: bytes, tree and rows --------------------------------------------------------------------------------


def test_the_bytes_are_those_of_the_example():
    for page, document in articles():
        pieces = document.with_class("b")
        assert bytes.fromhex("".join(piece.text for piece in pieces)) == page.example.data, page.title
        halves = document.with_class("half")
        assert all(len(half.text.split()) <= 9 for half in halves)
        assert [half.with_class("at")[0].text for half in halves] == [
            f"{start:04x}" for start in range(0, len(page.example.data), 8)
        ]


def test_every_byte_has_a_field_in_the_tree():
    for page, document in articles():
        nodes = {node.attributes["data-path"]: node for node in document.with_class("node")}
        assert len(nodes) == len(document.with_class("node")), f"{page.title}: two nodes have one path"
        for piece in document.with_class("b"):
            assert piece.attributes["data-path"] in nodes, page.title


def test_a_node_spans_the_bytes_of_all_below_it():
    for page, document in articles():
        at = 0
        spans = []
        for piece in document.with_class("b"):
            size = len(piece.text.split())
            spans.append((piece.attributes["data-path"] or "", at, at + size))
            at += size
        for node in document.with_class("node"):
            path = node.attributes["data-path"] or ""
            own = [span for span in spans if span[0] == path or re.match(rf"{re.escape(path)}[.\[ ]", span[0])]
            start, end = map(int, (node.attributes["data-at"] or "").split("-"))
            assert (start, end) == (own[0][1], own[-1][2]), (page.title, path)
            assert sum(last - first for _, first, last in own) == end - start, (page.title, path)


def test_rows_lead_to_bytes_by_the_same_paths():
    for page, document in articles():
        rows = set(document.values("data-field"))
        used = {html_bytes.field_of(path) for path in document.values("data-path")}
        leaves = {html_bytes.field_of(piece.attributes["data-path"] or "") for piece in document.with_class("b")}
        assert leaves <= rows, f"{page.title}: bytes without a row: {leaves - rows}"
        assert leaves <= used


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("A.B", "A.B"),
        ("A.B[0].C[12].D", "A.B[].C[].D"),
        ("A.B[3]", "A.B[]"),
        ("A.B[0] tags", "A.B[] tags"),
    ],
)
def test_a_field_is_its_path_without_indexes(path: str, field: str):
    assert html_bytes.field_of(path) == field


def test_values_and_types_stand_in_the_tree():
    document = read(html.article(page_of("ShareFetchRequest", 2), NOWHERE))
    nodes = {node.attributes["data-path"]: node.text for node in document.with_class("node")}
    assert '"orders-workers"' in nodes["ShareFetchRequest.GroupId"]
    assert "compact string" in nodes["ShareFetchRequest.GroupId"]
    assert nodes["ShareFetchRequest tags"] == "tagged fields none"


def test_opened_records_tell_their_size():
    page = page_of("FetchResponse", 17)
    roots = html_bytes.tree(page)
    found = {}

    def collect(node: html_bytes.Node) -> None:
        found[node.path] = node
        for child in node.children:
            collect(child)

    for root in roots:
        collect(root)
    records = found["FetchResponse.Responses[0].Partitions[0].Records"]
    batch = found["FetchResponse.Responses[0].Partitions[0].Records.Batch[0]"]
    assert records.value == f"{batch.end - batch.start} bytes"


@pytest.mark.parametrize(
    ("kind", "family"),
    [
        ("int32", "number"),
        ("uvarint", "number"),
        ("bool", "number"),
        ("compact string", "text"),
        ("uuid", "bytes"),
        ("compact records", "bytes"),
        ("[]int32", "many"),
        ("compact []FetchTopic", "many"),
        ("Endpoint", "many"),
    ],
)
def test_types_have_families(kind: str, family: str):
    assert type_family(kind) == family


# --- documents --------------------------------------------------------------------------------------------------------


def test_one_file_needs_nothing_else():
    text = html.render(page_of("ShareFetchRequest", 2))
    document = read(text)
    assert text.startswith("<!doctype html>")
    assert not document.values("src")
    assert not document.named("link")
    assert not re.findall(r"(?:https?:)?//[a-z]|url\(|@import", text)
    assert all(address.startswith("#") for address in document.values("href"))
    assert set(document.values("href")) <= {f"#{name}" for name in document.values("id")}


def test_several_pages_share_a_file_and_lead_to_each_other():
    pages = [page_of("ShareFetchRequest", 2), page_of("ShareFetchResponse", 2)]
    document = read(html.render_all(pages))
    ids = document.values("id")
    assert len(ids) == len(set(ids))
    links = {tag.text: tag.attributes["href"] for tag in document.named("a")}
    assert (links["Request"], links["Response"]) == ("#p0-top", "#p1-top")
    assert {f"#{name}" for name in ids} >= set(document.values("href"))


def test_landmarks_headings_and_language():
    document = read(html.render(page_of("StreamsGroupHeartbeatResponse", 0)))
    assert document.named("html")[0].attributes["lang"] == "en"
    assert [len(document.named(name)) for name in ("header", "main", "footer", "h1")] == [1, 1, 1, 1]
    headings = [int(tag.name[1]) for tag in document.walk() if re.fullmatch(r"h[1-6]", tag.name)]
    assert all(after - before <= 1 for before, after in pairwise(headings))
    assert all(tag.attributes.get("aria-label") for tag in document.named("nav"))
    assert document.named("a")[0].attributes["href"] == "#main"


def test_no_styles_or_handlers_in_the_markup():
    # A console with a strict content policy shows the same articles.
    for _, document in articles():
        for tag in document.walk():
            assert tag.name not in ("script", "style")
            assert not [name for name in tag.attributes if name == "style" or name.startswith("on")]


def test_the_switches_lead_to_the_other_half_and_to_all_versions():
    document = read(html.article(page_of("ShareFetchRequest", 2), PageLinks(everywhere)))
    switches = {tag.text: tag.attributes.get("href") for nav in document.with_class("switch") for tag in nav.named("a")}
    assert switches == {"Response": "api-ShareFetch-response-2", "v1": "api-ShareFetch-request-1"}
    current = [
        tag.text for nav in document.with_class("switch") for tag in nav.walk() if "aria-current" in tag.attributes
    ]
    assert current == ["Request", "v2"]


def test_keys_and_values_are_halves_too():
    document = read(html.article(page_of("StreamsGroupMetadataValue", 0), PageLinks(everywhere)))
    assert [tag.text for nav in document.with_class("switch") for tag in nav.named("li")] == ["Key", "Value"]


def test_hostile_text_stays_text():
    page = page_of("ShareFetchRequest", 2)
    row, *rows = page.schema
    span, *spans = page.example.spans
    example = msgspec.structs.replace(
        page.example,
        caption=HOSTILE,
        value={HOSTILE: HOSTILE},
        spans=(msgspec.structs.replace(span, label=HOSTILE, value=HOSTILE), *spans),
    )
    hostile = msgspec.structs.replace(
        page,
        title=HOSTILE,
        summary=(ProsePiece(HOSTILE, PageRef("error", HOSTILE)),),
        purpose=(ProsePiece(HOSTILE),),
        schema=(msgspec.structs.replace(row, name=HOSTILE, signature=HOSTILE, about=(ProsePiece(HOSTILE),)), *rows),
        example=example,
    )
    expected = [tag.name for tag in read(html.render(page)).walk()]
    document = read(html.render(hostile))
    assert [tag.name for tag in document.walk() if tag.name != "code"] == [name for name in expected if name != "code"]
    assert HOSTILE in document.text
    assert document.named("title")[0].text == HOSTILE
    linked = read(html.article(hostile, PageLinks(lambda ref: ref.name)))
    assert HOSTILE in linked.values("href")


def test_scripts_can_stand_inside_a_document():
    for name in ("page.js", "theme.js"):
        assert "</script" not in html.own(name)
    assert "</style" not in html.own("page.css")


def test_error_pages_tell_what_to_do_and_where_it_comes_from():
    page = explain.error_page("FENCED_MEMBER_EPOCH")
    document = read(html.article(page, PageLinks(everywhere)))
    assert plain(page.remedy) in document.text
    assert "not retriable" in document.text
    assert page.exception
    assert page.exception in document.text
    assert {use.api for use in page.uses} <= {tag.text for tag in document.named("a")}
