"""The same frames to both controllers, and where their answers differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ottla.wire.batch import split_batches
from ottla.wire.errors import ErrorCode
from ottla.wire.types.fetch_snapshot import FetchSnapshotRequest
from tests.component.broker.raw_client import Closed
from tests.interop.groups.conversation import differences
from tests.interop.quorum_frames.controllers import Controller
from tests.interop.quorum_frames.requests import Frame
from tests.interop.quorum_frames.seeded import NODE_ID

_TIMES = frozenset({"last_fetch_timestamp", "last_caught_up_timestamp"})


class Comparison:
    """What both have answered so far. `listed` are the differences of docs/reference/differences.md that were met."""

    def __init__(self, both: tuple[Controller, Controller]) -> None:
        self.apache, self.ours = both
        self.count = 0
        self.found: list[str] = []
        self.listed: set[str] = set()

    def ask(self, frames: Iterable[Frame], where: str) -> None:
        """Send frames to both; note what is different, a line for each field."""
        for frame in frames:
            self.count += 1
            ours, theirs = answer(self.ours, frame), answer(self.apache, frame)
            if (name := _listed(frame, ours, theirs)) is not None:
                self.listed.add(name)
            else:
                self.found += [f"{where}: {frame.name}{each}" for each in differences(ours, theirs)]


def _listed(frame: Frame, ours: Any, theirs: Any) -> str | None:
    """The line of docs/reference/differences.md that says why the answers differ."""
    if not isinstance(ours, dict) or not isinstance(theirs, dict) or ours == theirs:
        return None
    is_broken = theirs["error_code"] == ErrorCode.UNKNOWN_SERVER_ERROR
    if isinstance(frame.request, FetchSnapshotRequest) and is_broken and ours["topics"]:
        return "fetch-snapshot-errors" if ours["topics"][0]["partitions"][0]["error_code"] else None
    return "resigned-leader" if ours == _led_by_nobody(theirs) else None


def _led_by_nobody(answer: Any) -> Any:
    """An answer as it would be if the node that gives it did not name itself as leader."""
    if isinstance(answer, list):
        return [_led_by_nobody(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    without = {key: _led_by_nobody(value) for key, value in answer.items()}
    if without.get("leader_id") == NODE_ID:
        without |= {"leader_id": -1} | ({"host": "", "port": 0} if "host" in without else {})
    if "node_endpoints" in without:
        without["node_endpoints"] = [each for each in without["node_endpoints"] if each["node_id"] != NODE_ID]
    return without


def answer(controller: Controller, frame: Frame) -> Any:
    """What a controller answers, as plain values; a word if it closes the connection."""
    try:
        reply = controller.client.ask(frame.request, frame.version)
    except Closed:
        return "closed"
    return plain(reply, controller)


def plain(message: Any, controller: Controller) -> Any:
    """A message as plain values, without what is each controller's own."""
    return _plain(message, {port: f"port of {node_id}" for node_id, port in controller.ports.items()})


def _plain(value: Any, ports: Mapping[int, str]) -> Any:
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        if fields.get("error_code"):
            fields.pop("error_message", None)  # docs/reference/differences.md: error-texts
        return {name: _field(name, each, ports) for name, each in fields.items()}
    if isinstance(value, tuple | list):
        return [_plain(each, ports) for each in value]
    return int(value) if isinstance(value, int) else value


def _field(name: str, value: Any, ports: Mapping[int, str]) -> Any:
    """Ports are named by whose they are. Times, the content of records, and the order of observers are left out."""
    if name == "port":
        return ports.get(value, value)
    if name == "observers":
        return sorted((_plain(each, ports) for each in value), key=repr)
    if name in _TIMES:
        return "unknown" if value < 0 else "known"
    if name == "records":
        return None if value is None else [_shape(each) for each in split_batches(bytes(value))]
    if name == "unaligned_records":
        return None if value is None else len(value)
    return _plain(value, ports)


def _shape(batch: Any) -> tuple[int, int, int, bool]:
    return batch.base_offset, batch.last_offset, batch.partition_leader_epoch, batch.is_control
