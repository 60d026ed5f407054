"""The tour through the codec."""

import json

from rich.pretty import Pretty
from rich.table import Table
from rich.text import Text

from ottla import wire
from ottla.cli.tour.step import Stage, Step
from ottla.wire import errors, types
from ottla.wire.batch import BatchView, Compression, Record, build_batch, split_batches
from ottla.wire.index import MESSAGES

NAME, VERSION = "StreamsGroupHeartbeatRequest", 0
Heartbeat = types.StreamsGroupHeartbeatRequest
HEARTBEAT = Heartbeat(
    group_id="orders-app",
    member_id="f2Lk0pXvQ1mJ7c9sYb3hZw",
    member_epoch=4,
    rebalance_timeout_ms=45_000,
    active_tasks=(Heartbeat.TaskIds(subtopology_id="0", partitions=(0, 1, 2)),),
    standby_tasks=(),
    warmup_tasks=(),
)


def encode(stage: Stage) -> None:
    data = wire.encode(HEARTBEAT, VERSION)
    stage.code(f"data = wire.encode(heartbeat, {VERSION})")
    stage.bytes(data)
    stage.check(
        f"{len(data)} bytes, the group's name first, its length plus one before it", data[:11] == b"\x0borders-app"
    )


def decode(stage: Stage) -> None:
    stage.code(f'heartbeat = wire.decode("{NAME}", {VERSION}, data)')
    decoded = wire.decode(NAME, VERSION, wire.encode(HEARTBEAT, VERSION))
    stage.show(Pretty({field: getattr(decoded, field) for field in ("group_id", "member_epoch", "active_tasks")}))
    stage.check("the value that came back equals the one that was sent", decoded == HEARTBEAT)


def as_json(stage: Stage) -> None:
    stage.code(f"wire.to_json(heartbeat, {VERSION})")
    value = wire.to_json(HEARTBEAT, VERSION)
    stage.show(json.dumps(value))
    again = wire.from_json(NAME, VERSION, value)
    stage.check(
        "read back from JSON it has the same bytes", wire.encode(again, VERSION) == wire.encode(HEARTBEAT, VERSION)
    )


def unknown_tag(stage: Stage) -> None:
    known = wire.encode(HEARTBEAT, VERSION)
    newer = known[:-1] + bytes([1, 77, 4]) + b"soon"  # one tagged field: its number, its size, its content
    decoded = wire.decode(NAME, VERSION, newer)
    stage.code("heartbeat.unknown_tags")
    stage.show(Pretty(decoded.unknown_tags))
    stage.check("the field is kept", decoded.unknown_tags == {77: b"soon"})
    stage.check("and written again, byte for byte", wire.encode(decoded, VERSION) == newer)


def broken(stage: Stage) -> None:
    data = wire.encode(HEARTBEAT, VERSION)
    count_at = data.index(b"\x02\x30\x04") + 2  # active tasks: the name "0" with its length, then three partitions
    claims_126 = data[:count_at] + b"\x7f" + data[count_at + 1 :]
    stage.bytes(claims_126, mark=count_at)
    try:
        wire.decode(NAME, VERSION, claims_126)
    except wire.WireError as error:
        stage.show(Text(f"WireError: {error}"))
        stage.check("the error names the field", error.path == f"{NAME}.ActiveTasks[0].Partitions")
        stage.check("and the byte", error.byte_offset == count_at)
    else:
        stage.check("broken bytes are refused", False)


def record_batch(stage: Stage) -> None:
    records = [Record(offset, 1_767_225_600_000 + offset, b"order-%d" % offset, b"paid " * 40) for offset in range(100)]
    stage.code("data = build_batch(records, compression=Compression.ZSTD)")
    data = build_batch(records, compression=Compression.ZSTD)
    view = next(split_batches(data))
    assert isinstance(view, BatchView)  # older formats have a class of their own
    stage.show(
        f"offsets {view.base_offset} to {view.last_offset}, {view.record_count} records in {view.size_bytes} bytes"
    )
    stage.check("the checksum is right", view.is_valid)
    stage.check("the records are read back unchanged", view.records() == records)
    damaged = bytearray(data)
    damaged[-1] ^= 1
    stage.check("a flipped bit is detected", not next(split_batches(damaged)).is_valid)


def error_code(stage: Stage) -> None:
    stage.code("error = wire.errors.by_code(110)")
    error = errors.by_code(110)
    table = Table.grid(padding=(0, 2))
    table.add_row("name", error.name)
    table.add_row("retriable", "yes" if error.retriable else "no")
    table.add_row("means", error.meaning)
    table.add_row("do", error.remedy)
    stage.show(table)
    stage.check("codes can be looked up by name, too", errors.by_name(error.name) == error)


def numbers(stage: Stage) -> None:
    kinds = [entry.kind for entry in MESSAGES.values()]
    table = Table.grid(padding=(0, 2))
    table.add_row(str(kinds.count("request")), "APIs, each with request and response")
    table.add_row(str(sum(kind not in ("request", "response", "header") for kind in kinds)), "record and data types")
    table.add_row(str(sum(len(wire.versions(name)) for name in wire.names())), "versions of all of them together")
    table.add_row(str(len(errors.ErrorCode)), "error codes")
    stage.show(table)
    stage.check("each name has a version", all(wire.versions(name) for name in wire.names()))
    stage.show("See them all with: ottla messages")


STEPS = (
    Step(
        "a message becomes bytes", "A member of a Kafka Streams application reports to its group, in version 0.", encode
    ),
    Step(
        "bytes become a message",
        "One typed, frozen class serves all versions; the version is given to the codec.",
        decode,
    ),
    Step("the same as JSON", "In the form that Kafka's own JsonConverter classes write.", as_json),
    Step("a field from the future", "A newer peer adds a tagged field that this schema does not know.", unknown_tag),
    Step("broken bytes", "A count that cannot be true is refused before anything is allocated for it.", broken),
    Step(
        "a record batch",
        "One hundred records, compressed, in the form in which Kafka stores and sends them.",
        record_batch,
    ),
    Step("an error code", "Every error says what it means and what to do about it.", error_code),
    Step("what is covered", "What the codec supports.", numbers),
)
