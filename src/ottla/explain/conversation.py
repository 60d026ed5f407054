"""The story of a message: its purpose and sender, the messages before and after it, and the errors of its API.

The schema text has all this for a request; the response shares it.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ottla.explain.page import ErrorRow, ErrorUse, PageRef, Prose, ProsePiece
from ottla.explain.prose import linked, ref_of
from ottla.wire.errors import ErrorCode, by_name
from ottla.wire.frames import api_names
from ottla.wire.index import MESSAGES
from ottla.wire.keyed import FAMILIES
from ottla.wire.schemas import message_schema
from ottla.wire.text import Message

RESERVED = "reserved"
GENERAL_ERRORS = {
    ErrorCode.UNSUPPORTED_VERSION: "The receiver does not serve this version; ApiVersions tells which it does.",
    ErrorCode.UNKNOWN_SERVER_ERROR: "Something failed that no other code describes; the broker's log has the cause.",
}
"""Every API may answer with these. If a schema describes one of them, its description is used."""
_FILES = {
    "QuorumStateData": "__cluster_metadata-0/quorum-state",
    "AbortedTxn": "*.txnindex",
    "ProducerSnapshot": "*.snapshot",
    "RemoteLogSegmentMetadataSnapshotRecord": None,
    "ControlRecordTypeSchema": "control batches of any partition",
    "EndTxnMarker": "control batches of any partition",
}
_CONTROL_BATCHES = "control batches of __cluster_metadata"
_ANSWERERS = {"broker": "broker", "controller": "controller"}


class Story(NamedTuple):
    purpose: Prose
    sender: Prose
    previous: Prose
    next: Prose


def story(name: str, version: int) -> Story:
    """The first part of a page, before the bytes."""
    message = message_schema(name)
    if message.kind == "response":
        return _response_story(name, version)
    return Story(
        purpose=_noted(message, "purpose"),
        sender=_noted(message, "sender"),
        previous=_noted(message, "prev"),
        next=_noted(message, "next"),
    )


def _response_story(name: str, version: int) -> Story:
    request = f"{name.removesuffix('Response')}Request"
    schema = message_schema(request)
    where = " or ".join(_ANSWERERS[listener] for listener in schema.listeners) or "node"
    asked = ProsePiece(f"{request} v{version}", ref_of(request, version))
    return Story(
        purpose=_noted(schema, "purpose"),
        sender=(ProsePiece(f"The {where} that was sent "), asked, ProsePiece(".")),
        previous=(asked, ProsePiece(", which has the same version and correlation id.")),
        next=_noted(schema, "next"),
    )


def _noted(message: Message, key: str) -> Prose:
    """The note of a message under a key; several are joined."""
    return linked(" ".join(note.text for note in message.notes if note.key == key), besides=message.name)


def summary(name: str) -> str:
    """One sentence about the message itself."""
    return message_schema(name).about or ""


def counterpart(name: str, version: int) -> PageRef | None:
    """The page of the response to a request, of the value to a key, and the other way round."""
    pairs = (("Request", "Response"), ("Response", "Request"), ("Key", "Value"), ("Value", "Key"))
    for end, other_end in pairs:
        other = name.removesuffix(end) + other_end
        if name.endswith(end) and other in MESSAGES:
            is_api = MESSAGES[name].kind in ("request", "response")
            return ref_of(other, version if is_api else None)
    return None


def stored_in(name: str) -> str | None:
    """The topic or file that holds records of this type."""
    entry = MESSAGES[name]
    if name in _FILES:
        return _FILES[name]
    if entry.file == "control_records":
        return _CONTROL_BATCHES
    return next((topic for topic, files in FAMILIES.items() if entry.file in files), None)


class _ErrorNote(NamedTuple):
    error: ErrorCode
    reserved: bool
    meaning: str


@cache
def _error_notes(request: str) -> tuple[_ErrorNote, ...]:
    """The notes on errors in the schema of a request, in its order."""
    found = []
    for note in message_schema(request).notes:
        if note.key == "error":
            head, _, meaning = note.text.partition("  -- ")
            name, _, mark = head.partition(" ")
            assert mark in ("", RESERVED), f"{request}: {note.text}"
            found.append(_ErrorNote(by_name(name), mark == RESERVED, meaning))
    return tuple(found)


def errors(name: str) -> tuple[ErrorRow, ...]:
    """The errors of an API: those that brokers send, then the general ones, then the reserved ones."""
    if MESSAGES[name].kind not in ("request", "response"):
        return ()
    notes = _error_notes(f"{name.removesuffix('Request').removesuffix('Response')}Request")
    rows = [_error_row(note, name) for note in notes]
    named = {note.error for note in notes}
    rows += [
        ErrorRow(error.name, error.value, error.retriable, linked(meaning, besides=name), reserved=False, general=True)
        for error, meaning in GENERAL_ERRORS.items()
        if error not in named
    ]
    return tuple(sorted(rows, key=lambda row: row.reserved))  # stable: the schema's order stays


def _error_row(note: _ErrorNote, name: str) -> ErrorRow:
    meaning = linked(note.meaning, besides=name)
    error = note.error
    return ErrorRow(error.name, error.value, error.retriable, meaning, reserved=note.reserved, general=False)


def error_uses(error: ErrorCode) -> tuple[ErrorUse, ...]:
    """The APIs whose schemas name the error, by API key."""
    found = []
    for key, api in sorted(api_names().items()):
        for note in _error_notes(f"{api}Request"):
            if note.error == error:
                meaning = linked(note.meaning, besides=error.name)
                found.append(ErrorUse(api, key, meaning, note.reserved, PageRef("api", api)))
    return tuple(found)
