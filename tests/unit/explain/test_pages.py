"""Every page builds, and its parts agree with each other and with the codec."""

import ast
from pathlib import Path

import pytest

from ottla import explain, wire
from ottla.explain.page import MessagePage, PageRef, Prose, ProsePiece, plain
from ottla.wire.errors import ErrorCode
from ottla.wire.index import MESSAGES
from tests.unit.explain.page_list import error_pages, message_pages, page_of


def test_there_is_a_page_for_every_version_and_every_error():
    shown = {(page.message, page.version) for page in message_pages()}
    assert shown == {(name, version) for name in wire.names() for version in wire.versions(name)}
    assert {page.code for page in error_pages()} == set(ErrorCode)


def test_references_and_pages_name_each_other():
    for page in (*message_pages(), *error_pages()):
        assert explain.build(page.ref).ref == page.ref


def test_what_a_page_says_about_its_message_is_what_the_index_says():
    for page in message_pages():
        entry = MESSAGES[page.message]
        assert (page.kind, page.api_key) == (entry.kind, entry.key)
        assert page.versions == tuple(wire.versions(page.message))
        assert (page.flexible_from is not None and page.version >= page.flexible_from) == page.diagram[-1].flexible or (
            page.diagram[-1].kind == "batch"
        )


def test_a_request_and_its_response_point_to_each_other():
    for page in message_pages():
        if page.ref.kind == "api":
            assert page.counterpart is not None
            assert page.counterpart.name == page.ref.name
            assert page.counterpart.part != page.ref.part
            assert page.counterpart.version == page.version


def test_every_message_says_what_it_is_for_and_who_sends_it():
    for page in message_pages():
        assert plain(page.summary), page.title
        assert plain(page.purpose), page.title
        assert plain(page.sender), page.title
        if page.ref.kind == "api":
            assert plain(page.previous), page.title
            assert plain(page.next), page.title


def links(texts: list[Prose]) -> list[tuple[ProsePiece, PageRef]]:
    return [(piece, piece.target) for text in texts for piece in text if piece.target is not None]


def texts_of(page: MessagePage) -> list[Prose]:
    texts = [page.summary, page.purpose, page.sender, page.previous, page.next]
    texts += [row.meaning for row in page.errors] + [row.about for row in page.schema]
    return texts + [note for row in page.version_rows for note in row.notes]


def test_links_lead_to_pages_that_exist():
    exist = set(explain.all_refs())
    names = {(ref.kind, ref.name) for ref in exist}
    count = 0
    for page in message_pages():
        for _, target in links(texts_of(page)):
            count += 1
            assert (target.kind, target.name) in names
            assert target.version is None or target in exist
    for error in error_pages():
        for _, target in links([error.meaning, error.remedy, *(use.meaning for use in error.uses)]):
            assert (target.kind, target.name) in names
            assert target.name != error.name
    assert count > 1_000


def test_names_of_messages_and_errors_become_links():
    text = page_of("ShareFetchRequest", 2).next
    assert "ShareAcknowledge" in {piece.text for piece, _ in links([text])}
    assert ("SHARE_SESSION_NOT_FOUND", PageRef("error", "SHARE_SESSION_NOT_FOUND")) in {
        (piece.text, target) for piece, target in links([text])
    }
    assert "ShareFetch" not in {piece.text for piece, _ in links([text])}, "a page does not link to itself"


def test_the_metadata_log_is_not_the_metadata_api():
    (row,) = [row for row in page_of("BrokerRegistrationResponse", 4).schema if row.name == "BrokerEpoch"]
    assert plain(row.about).startswith("Metadata log offset")
    assert not links([row.about])


def test_a_page_of_a_response_answers_its_request():
    page = page_of("ShareFetchResponse", 2)
    assert plain(page.sender) == "The broker that was sent ShareFetchRequest v2."
    assert page.purpose == page_of("ShareFetchRequest", 2).purpose
    assert page.errors == page_of("ShareFetchRequest", 2).errors
    assert page.listeners == ("broker",)


def test_records_say_where_they_are_kept_and_what_stands_before_them():
    value = page_of("StreamsGroupMetadataValue", 0)
    assert (value.stored_in, value.framing) == ("__consumer_offsets", "version16")
    assert page_of("StreamsGroupMetadataKey", 0).framing == "type16"
    topic = page_of("TopicRecord", 0)
    assert (topic.stored_in, topic.framing) == ("__cluster_metadata", "frame-varints")
    assert page_of("ShareFetchRequest", 2).framing is None


def test_the_default_version_is_the_highest_stable_one():
    assert explain.default_version("ShareFetchRequest") == MESSAGES["ShareFetchRequest"].high
    assert MESSAGES["InitProducerIdRequest"].unstable
    assert explain.default_version("InitProducerIdRequest") == MESSAGES["InitProducerIdRequest"].high - 1
    unstable = page_of("InitProducerIdRequest", MESSAGES["InitProducerIdRequest"].high)
    assert unstable.unstable
    assert unstable.version_rows[0].unstable


SOURCES = Path(explain.__file__).parent
FORBIDDEN = {"asyncio", "socket", "os", "time", "random", "rich"}


@pytest.mark.parametrize("path", sorted(SOURCES.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCES)))
def test_nothing_here_does_input_or_output(path: Path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    at_once = {node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        roots = {name.split(".")[0] for name in names}
        if path == SOURCES / "render" / "terminal.py" and node not in at_once:
            roots -= {"rich"}  # imported when a page is printed, and for type checkers
        assert not roots & FORBIDDEN, f"{path.name}: {names}"
