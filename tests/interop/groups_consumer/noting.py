"""A conversation written down so that two of them can be compared: what chance decides is replaced by its name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

from ottla import wire
from ottla.wire.keyed import KeyedRecord
from ottla.wire.types import JoinGroupRequest

Note = dict[str, Any]

_TIMES = {"assignmentTimestamp", "currentStateTimestamp", "commitTimestamp", "timestamp"}
_LEFT_OUT = {"errorMessage", "throttleTimeMs", "version"}
"""Sentences are each broker's own, and the version of the topics is the place of a record in another log."""


class Notebook:
    """Takes down requests, answers and records. Ids that a broker makes up become #1, #2, ...; topic ids id(name)."""

    def __init__(self, topic_ids: Mapping[str, bytes]) -> None:
        self.notes: list[Note] = []
        self._names = {wire.uuid_text(topic_id): f"id({name})" for name, topic_id in topic_ids.items()}

    def take(self, request: Any, version: int, answer: Any, records: Iterable[KeyedRecord]) -> None:
        if isinstance(request, JoinGroupRequest) and not request.member_id and answer.member_id:
            self._names[answer.member_id] = f"#{sum(name.startswith('#') for name in self._names.values()) + 1}"
        written = [_record(each) for each in records]
        self.notes.append(
            {
                "request": {type(request).__name__: self._plain(wire.to_json(request, version))},
                "answer": self._plain(wire.to_json(answer, version)),
                "records": _in_order(self._plain(written)),
            }
        )

    def _plain(self, value: Any) -> Any:
        text = json.dumps(value)
        for long, short in self._names.items():
            text = text.replace(long, short)
        return _settle(json.loads(text))


def _record(keyed: KeyedRecord) -> Note:
    value = None if keyed.value is None else wire.to_json(keyed.value, keyed.value_version)
    return {"key": {type(keyed.key).__name__: wire.to_json(keyed.key, keyed.key_version)}, "value": value}


def _settle(value: Any) -> Any:
    """Times and hashes as words, lists of topics and members in an order."""
    if isinstance(value, list):
        return sorted(map(_settle, value), key=_place) if all(isinstance(each, dict) for each in value) else value
    if not isinstance(value, dict):
        return value
    settled = {name: _settle(each) for name, each in value.items() if name not in _LEFT_OUT}
    for name in settled.keys() & _TIMES:
        settled[name] = "some time" if settled[name] else settled[name]
    if settled.get("metadataHash"):
        settled["metadataHash"] = "some hash"
    return settled


def _place(each: Mapping[str, Any]) -> str:
    """Topics, members and protocols come in any order; records keep theirs."""
    known = ("topicId", "topicName", "memberId", "partitionIndex")
    return next((str(each[name]) for name in known if name in each), "")


def _in_order(records: list[Note]) -> list[Note]:
    """Neighbours of one kind, which may come in any order, by what they are about."""
    kind: Callable[[Note], tuple[str, bool]] = lambda each: (next(iter(each["key"])), each["value"] is None)  # noqa: E731
    return [each for _, run in groupby(records, kind) for each in sorted(run, key=json.dumps)]
