"""Encoding and decoding of messages beside kio, kafka-python and aiokafka, on the same bytes.

    python -m benchmarks.wire.bench_messages [--only decode] [--rounds 15] [--window 0.05]

Before anything is timed, every codec has to read the bytes into the content they were made from, and to write that
content to the same bytes. Where aiokafka lacks the version, its highest one takes part twice: beside the newer version
of the others (marked with its own), and in a case of its own in which all have its version.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks import runner
from benchmarks.runner import Case, Size, Subject
from benchmarks.wire.codecs import Aiokafka, Codec, KafkaPython, Kio, Ottla, OttlaPrepared
from benchmarks.wire.contents import MESSAGES, VARIANTS, Message

PACKAGES = ("msgspec", "kio", "kafka-python", "aiokafka")
MESSAGES_BY_SIZE = {Size.FULL: MESSAGES, Size.QUICK: MESSAGES, Size.SMOKE: MESSAGES[-1:]}
"""One in two versions goes through all of the code; tests/unit has the others."""


class Disagreement(Exception):
    """A codec reads or writes something else than the others: timing it would compare unlike things."""


@dataclass(frozen=True)
class Entry:
    """One codec at one version of a message, with the bytes of every variant."""

    codec: Codec
    message: Message
    version: int
    encoded: Sequence[bytes]

    def decoding(self, name: str) -> Subject:
        call, arguments = self.codec.decode_call(self.message.name, self.version)
        return Subject(name, call, [arguments(data) for data in self.encoded])

    def encoding(self, name: str) -> Subject:
        call, arguments = self.codec.encode_call(self.message.name, self.version)
        values = [self.codec.decode(self.message.name, self.version, data) for data in self.encoded]
        return Subject(name, call, [arguments(value) for value in values])

    def check(self) -> None:
        encode, arguments = self.codec.encode_call(self.message.name, self.version)
        where = f"{self.codec.name}, {self.message.name} v{self.version}"
        for variant, data in enumerate(self.encoded):
            value = self.codec.decode(self.message.name, self.version, data)
            if not self.codec.agrees(value, self.message.content(self.version, variant)):
                raise Disagreement(f"{where}: the decoded value is not what was encoded")
            if encode(*arguments(value)) != data:
                raise Disagreement(f"{where}: encodes to other bytes")


def reference_bytes(kio: Kio, message: Message, version: int) -> list[bytes]:
    encode, _ = kio.encode_call(message.name, version)
    struct = kio.type_of(message.name, version)
    return [encode(kio.build(struct, message.content(version, variant))) for variant in range(VARIANTS)]


def entries_of(message: Message, version: int, codecs: Sequence[Codec], kio: Kio) -> list[Entry]:
    encoded = reference_bytes(kio, message, version)
    entries = [Entry(codec, message, version, encoded) for codec in codecs if codec.has(message.name, version)]
    for entry in entries:
        entry.check()
    return entries


def cases(messages: Sequence[Message], codecs: Sequence[Codec], kio: Kio) -> Iterator[Case]:
    for message in messages:
        entries = {version: entries_of(message, version, codecs, kio) for version in message.versions}
        older = [entry for entry in entries[message.versions[-1]] if isinstance(entry.codec, Aiokafka)]
        for version in message.versions:
            yield from both_ways(message, version, entries[version] + (older if version == message.version else []))


def both_ways(message: Message, version: int, entries: Sequence[Entry]) -> Iterator[Case]:
    def name(entry: Entry) -> str:
        return entry.codec.name if entry.version == version else f"{entry.codec.name} (v{entry.version})"

    title = f"{message.name} v{version}, {message.title}"
    facts: dict[str, int | str] = {"message_bytes": len(entries[0].encoded[0])}
    yield Case(f"decode {title}", [entry.decoding(name(entry)) for entry in entries], facts)
    yield Case(f"encode {title}", [entry.encoding(name(entry)) for entry in entries], facts)


def main(arguments: Sequence[str] | None = None) -> int:
    options = runner.read_windows(runner.parser(__doc__), arguments, messages=MESSAGES_BY_SIZE)
    kio = Kio()
    codecs: list[Codec] = [Ottla(), OttlaPrepared(), kio, KafkaPython(), Aiokafka()]
    runner.run("wire-messages", cases(options.messages, codecs, kio), options, PACKAGES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
