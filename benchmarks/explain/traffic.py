"""A capture of made-up traffic of any size: producers, consumers and members of groups, a few connections at a time."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ottla.wire import frames, types
from ottla.wire.batch import Record, build_batch

SEGMENT_BYTES = 1_448
CONNECTIONS = 8
BROKER = (b"\x0a\0\0\x02", 9092)
_SYN, _ACK, _PUSH = 0x02, 0x10, 0x08


def write_capture(path: Path, size_bytes: int, segment_bytes: int = SEGMENT_BYTES) -> int:
    """Write a capture of about so many bytes; gives the number of packets."""
    packets = 0
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1))
        lines = [_Line(file, number, segment_bytes) for number in range(CONNECTIONS)]
        rounds = _rounds()
        while file.tell() < size_bytes:
            for line in lines:
                line.say(next(rounds))
        packets = sum(line.packets for line in lines)
    return packets


def _rounds() -> Iterator[list[tuple[bool, bytes]]]:
    """What is said in turn: (from the client, bytes), with correlation ids that count up."""
    number = 0
    records = [Record(at, 1_700_000_000_000 + at, b"key-%d" % at, b"v" * 200, ()) for at in range(80)]
    batch = build_batch(records)
    while True:
        for make in (_produce, _fetch, _heartbeat, _fetch, _metadata):
            number = (number + 1) % (1 << 31)
            yield make(number, batch)


def _pair(request: object, response: object, version: int, number: int) -> list[tuple[bool, bytes]]:
    return [
        (True, frames.write_request(request, version, correlation_id=number, client_id="bench-client")),
        (False, frames.write_response(response, version, correlation_id=number)),
    ]


def _produce(number: int, batch: bytes) -> list[tuple[bool, bytes]]:
    kind = types.ProduceRequest
    partition = kind.PartitionProduceData(index=number % 12, records=batch)
    request = kind(
        acks=-1, timeout_ms=30_000, topic_data=(kind.TopicProduceData(name="orders", partition_data=(partition,)),)
    )
    answer = types.ProduceResponse
    response = answer(
        responses=(
            answer.TopicProduceResponse(name="orders", partition_responses=(answer.PartitionProduceResponse(),)),
        )
    )
    return _pair(request, response, 9, number)


def _fetch(number: int, batch: bytes) -> list[tuple[bool, bytes]]:
    topic_id = bytes(range(6)) + b"\x40\x01\x80" + bytes(range(7))
    asked = types.FetchRequest
    request = asked(
        max_wait_ms=500,
        topics=(asked.FetchTopic(topic_id=topic_id, partitions=(asked.FetchPartition(fetch_offset=number),)),),
    )
    kind = types.FetchResponse
    partitions = tuple(kind.PartitionData(partition_index=index, records=batch) for index in range(3))
    response = kind(responses=(kind.FetchableTopicResponse(topic_id=topic_id, partitions=partitions),))
    return _pair(request, response, 13, number)


def _heartbeat(number: int, batch: bytes) -> list[tuple[bool, bytes]]:
    request = types.ConsumerGroupHeartbeatRequest(group_id="orders-app", member_id="m-1", member_epoch=number)
    response = types.ConsumerGroupHeartbeatResponse(member_id="m-1", member_epoch=number, heartbeat_interval_ms=5_000)
    return _pair(request, response, 1, number)


def _metadata(number: int, batch: bytes) -> list[tuple[bool, bytes]]:
    kind = types.MetadataResponse
    partitions = tuple(
        kind.MetadataResponsePartition(
            partition_index=index, leader_id=index % 3, replica_nodes=(0, 1, 2), isr_nodes=(0, 1, 2)
        )
        for index in range(12)
    )
    response = kind(
        brokers=tuple(kind.MetadataResponseBroker(node, f"broker-{node}", 9092) for node in range(3)),
        topics=(kind.MetadataResponseTopic(name="orders", partitions=partitions),),
    )
    return _pair(types.MetadataRequest(), response, 12, number)


class _Line:
    """One connection, written packet by packet."""

    def __init__(self, file: BinaryIO, number: int, segment_bytes: int) -> None:
        self.file = file
        self.segment_bytes = segment_bytes
        self.ends = {True: (b"\x0a\0\0\x01", 40_000 + number), False: BROKER}
        self.sequences = {True: 1_000 * number, False: 7_000 * number}
        self.packets = 0
        self.packet(True, b"", _SYN)
        self.packet(False, b"", _SYN | _ACK)

    def say(self, said: list[tuple[bool, bytes]]) -> None:
        for is_client, data in said:
            for start in range(0, len(data), self.segment_bytes):
                self.packet(is_client, data[start : start + self.segment_bytes], _PUSH | _ACK)

    def packet(self, is_client: bool, data: bytes, flags: int) -> None:
        (source, source_port), (target, target_port) = self.ends[is_client], self.ends[not is_client]
        sequence, acknowledged = self.sequences[is_client], self.sequences[not is_client]
        tcp = struct.pack(">HHIIHHHH", source_port, target_port, sequence, acknowledged, 5 << 12 | flags, 65_535, 0, 0)
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(data), 0, 0, 64, 6, 0, source, target)
        packet = bytes(12) + b"\x08\x00" + ip + tcp + data
        at_us = self.packets * 50
        self.file.write(
            struct.pack("<IIII", 1_763_000_000 + at_us // 10**6, at_us % 10**6 * 1000, len(packet), len(packet))
        )
        self.file.write(packet)
        self.sequences[is_client] = (sequence + len(data) + bool(flags & _SYN)) % (1 << 32)
        self.packets += 1
