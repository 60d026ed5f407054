"""The benchmark of messages refuses to time codecs that do different things."""

from dataclasses import replace

import pytest

from benchmarks.wire.bench_messages import Disagreement, Entry, entries_of, reference_bytes
from benchmarks.wire.codecs import Aiokafka, Codec, KafkaPython, Kio
from benchmarks.wire.contents import MESSAGES, VARIANTS, Content, Message, produce_request

# kafka-python loads its schemas with functions that Python 3.11 warns of.
pytestmark = pytest.mark.filterwarnings(r"ignore:(read|open)_text is deprecated:DeprecationWarning")

KIO = Kio()
RIVALS: list[Codec] = [KIO, KafkaPython(), Aiokafka()]


def title(message: Message) -> str:
    return f"{message.name}, {message.title}"


@pytest.mark.parametrize("message", MESSAGES, ids=title)
def test_rivals_agree_with_each_other(message: Message):
    taking_part = [
        entry.codec.name for version in message.versions for entry in entries_of(message, version, RIVALS, KIO)
    ]
    assert taking_part[0] == "kio"
    assert ("aiokafka" in taking_part) == (message.aiokafka_version is not None)


@pytest.mark.parametrize("message", MESSAGES, ids=title)
def test_no_two_variants_are_alike(message: Message):
    assert len(set(reference_bytes(KIO, message, message.version))) == VARIANTS


@pytest.mark.parametrize("rival", RIVALS, ids=lambda one: one.name)
def test_another_content_is_noticed(rival: Codec):
    def with_one_more_byte(version: int, variant: int) -> Content:
        content = produce_request(version, variant)
        content["topic_data"][0]["partition_data"][0]["records"] += b"!"
        return content

    message = MESSAGES[-1]
    encoded = reference_bytes(KIO, message, 8)
    Entry(rival, message, 8, encoded).check()
    with pytest.raises(Disagreement, match="not what was encoded"):
        Entry(rival, replace(message, content=with_one_more_byte), 8, encoded).check()
