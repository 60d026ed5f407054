"""Every message, field, error and version of the schema text is described, and the descriptions say something."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.wire import text
from ottla.wire.text import Field, Message

SCHEMAS = Path(text.__file__).parent / "schemas"
GLOSSARY = text.parse_glossary((SCHEMAS / "glossary.txt").read_text())
FILES = sorted(path.name for path in SCHEMAS.glob("*.txt") if path.name != "glossary.txt")
API_FILES = [name for name in FILES if name[0].isdigit()]
RECORD_FILES = [name for name in FILES if not name[0].isdigit()]
ERRORS = Path(__file__).parents[2] / "golden" / "wire" / "errors.json"

ERROR_NOTE = re.compile(r"(?P<name>[A-Z][A-Z_]*)(?P<reserved> reserved)?  -- (?P<meaning>\S.*)")
# Words that say nothing by themselves, and those of the types, which say nothing about the field either.
EMPTY_WORDS = re.findall(
    r"\w+",
    """a all an and any are as at be but by can each every for from has have if in into is it its may no nor not of on
    one or other so such than that the their them then there these they this those to was were what when where which
    who whose will with array bool boolean byte bytes int integer number string text uuid value""",
)


class Described(NamedTuple):
    path: str
    message: Message
    field: Field
    about: str


@cache
def messages(file: str) -> tuple[Message, ...]:
    return text.parse_messages((SCHEMAS / file).read_text())


def all_messages() -> Iterator[Message]:
    return (message for file in FILES for message in messages(file))


def fields_below(fields: tuple[Field, ...], path: str) -> Iterator[tuple[str, Field]]:
    for field in fields:
        here = f"{path}.{field.name}"
        yield here, field
        yield from fields_below(field.fields, here)


def fields_of(message: Message) -> Iterator[tuple[str, Field]]:
    yield from fields_below(message.fields, message.name)
    for struct in message.structs:
        yield from fields_below(struct.fields, f"{message.name}:{struct.name}")


def described(message: Message) -> list[Described]:
    return [
        Described(path, message, field, field.about or GLOSSARY.get(field.name, ""))
        for path, field in fields_of(message)
    ]


def name_words(*names: str) -> set[str]:
    """The words of CamelCase names, singular: LastKnownElr gives last, known, elr."""
    parts = (part for name in names for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name))
    return {singular(part) for part in parts}


def singular(word: str) -> str:
    lower = word.lower()
    return lower[:-1] if lower.endswith("s") and len(lower) > 3 else lower


def new_words(entry: Described) -> set[str]:
    """What the description says beyond the names around it."""
    said = {singular(word) for word in re.findall(r"[A-Za-z]{2,}", entry.about)}
    names = name_words(entry.field.name, entry.field.type, entry.message.name)
    return said - names - {singular(word) for word in EMPTY_WORDS}


def notes(message: Message, key: str) -> list[str]:
    return [note.text for note in message.notes if note.key == key]


def error_list(message: Message) -> frozenset[str]:
    return frozenset(note.partition("  -- ")[0] for note in notes(message, "error"))


def later_versions(message: Message) -> set[int]:
    return set(range(message.versions.low + 1, message.versions.high + 1))


def noted_versions(message: Message) -> set[int]:
    return {int(note.key[1:]) for note in message.notes if re.fullmatch(r"v\d+", note.key)}


def requests() -> list[Message]:
    return [message for message in all_messages() if message.kind == "request"]


def test_all_apis_are_here():
    assert len(API_FILES) == 91
    assert [[message.kind for message in messages(file)] for file in API_FILES] == [["request", "response"]] * 91


def test_camel_case_falls_into_words():
    assert name_words("LastKnownElr", "TransactionPartitions", "KRaftVersion") == {
        *("last", "known", "elr"),
        *("transaction", "partition"),
        *("k", "raft", "version"),
    }


def test_a_description_that_repeats_the_names_says_nothing():
    lines = ("request PingRequest 1 versions 0", "  TopicNames: []string  -- The topic names of the ping.")
    [message] = text.parse_messages("\n".join(lines))
    [entry] = described(message)
    assert new_words(entry) == set()
    assert new_words(entry._replace(about="The topics, null for every one.")) == {"null"}


@pytest.mark.parametrize("file", FILES)
def test_every_message_is_described(file: str):
    assert [message.name for message in messages(file) if not message.about] == []


@pytest.mark.parametrize("file", FILES)
def test_every_field_is_described(file: str):
    missing = [entry.path for message in messages(file) for entry in described(message) if not entry.about]
    assert missing == []


@pytest.mark.parametrize("file", FILES)
def test_descriptions_are_sentences(file: str):
    texts = {
        **{message.name: message.about or "." for message in messages(file)},
        **{entry.path: entry.about or "." for message in messages(file) for entry in described(message)},
    }
    assert [name for name, about in texts.items() if not about.endswith((".", '."')) or "  " in about] == []


def test_descriptions_say_what_the_names_do_not():
    entries = [entry for message in all_messages() for entry in described(message)]
    empty = [f"{entry.path}: {entry.about}" for entry in entries if not new_words(entry)]
    assert len(empty) <= len(entries) * 0.05, "\n".join(empty)


def test_request_and_response_are_described_apart():
    abouts = [message.about for message in all_messages() if message.kind in ("request", "response") and message.about]
    assert len(set(abouts)) == len(abouts)


@pytest.mark.parametrize("file", API_FILES)
def test_every_request_tells_its_story(file: str):
    request, _ = messages(file)
    assert [key for key in ("purpose", "sender", "prev", "next") if len(notes(request, key)) != 1] == []


@pytest.mark.parametrize("file", RECORD_FILES)
def test_every_record_says_what_it_is_for_and_who_writes_it(file: str):
    untold = [
        f"{message.name} {key}"
        for message in messages(file)
        for key in ("purpose", "sender")
        if not notes(message, key)
    ]
    assert untold == []


@pytest.mark.parametrize("file", API_FILES)
def test_error_notes_name_existing_errors(file: str):
    known = {row["name"] for row in json.loads(ERRORS.read_text())}
    request, response = messages(file)
    assert notes(response, "error") == [], "errors are listed under the request"
    matches = {note: ERROR_NOTE.fullmatch(note) for note in notes(request, "error")}
    assert [note for note, match in matches.items() if match is None or match["name"] not in known] == []


@pytest.mark.parametrize("file", API_FILES)
def test_no_error_is_both_sent_and_reserved(file: str):
    listed = error_list(messages(file)[0])
    assert [name for name in listed if f"{name} reserved" in listed] == []


def test_error_lists_differ_as_the_apis_do():
    lists = [error_list(request) for request in requests()]
    assert len(lists) == 91
    assert len(set(lists)) >= 60


@pytest.mark.parametrize("file", API_FILES)
def test_every_version_of_an_api_says_what_it_changed(file: str):
    request, response = messages(file)
    assert later_versions(request) - noted_versions(request) - noted_versions(response) == set()


@pytest.mark.parametrize("file", RECORD_FILES)
def test_every_version_of_a_record_says_what_it_changed(file: str):
    untold = {message.name: later_versions(message) - noted_versions(message) for message in messages(file)}
    assert {name: versions for name, versions in untold.items() if versions} == {}


@pytest.mark.parametrize("file", FILES)
def test_no_note_is_about_a_version_that_is_not_served(file: str):
    strange = {message.name: noted_versions(message) - later_versions(message) for message in messages(file)}
    assert {name: versions for name, versions in strange.items() if versions} == {}


def test_glossary_is_used_and_told_once():
    names = {field.name for message in all_messages() for _, field in fields_of(message)}
    lines = [line for line in (SCHEMAS / "glossary.txt").read_text().splitlines() if not line.startswith("--")]
    assert set(GLOSSARY) <= names
    assert len(lines) == len(GLOSSARY)
