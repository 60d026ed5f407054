"""The cost of a reading in bits, by which guesses are compared.

A reading is a list of spans with field, type and value. Each span costs as many bits as an encoder would need that
knows the usual values of Kafka's fields: an error code of 0 costs next to nothing, a throttle time of two years a lot.
All readings explain the same bytes, so the one with the fewest bits is the likeliest. Bytes without a meaning cost 8
bits each, so `8 * len(data)` is the cost of explaining nothing.

The figures below are estimates; tests/unit/explain/test_guess.py measures how often they find the right message.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import log2

from ottla.wire.shape import FIXED_SIZES, ZERO_UUID
from ottla.wire.trace import Span

__all__ = ["BYTE_BITS", "is_canonical", "reading_bits"]

BYTE_BITS = 8.0
UNKNOWN_TAG_BITS = 24.0
KNOWN_TAG_BITS = 3.0
NULL_BITS = 1.5
ABSURD_BITS = 8.0  # added to the type's own bits, for an implausible value
ERROR_CODE_MAX = 136
HOUR_MS = 3_600_000
# Times between 2001 and 2065, in milliseconds.
EPOCH_MS = range(10**12, 3 * 10**12)
EPOCH_MS_BITS = 30.0
UUID_RANDOM_BITS = 122.0
SMALL_MAX = 1 << 20

# Fields whose text is nearly always one of a few words.
_WORDS = {
    "Mechanism": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"),
    "Mechanisms": ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"),
    "ProtocolType": ("consumer", "connect", "share", "streams", ""),
}
_CHEAP = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


def reading_bits(spans: Iterable[Span]) -> float:
    """The cost of a whole reading."""
    return sum(map(_span_bits, spans))


def is_canonical(spans: Iterable[Span], data: bytes) -> bool:
    """Whether an encoder would write the same bytes: no padded varint, no unusual marker or boolean."""
    return all(_is_written_so(span, data) for span in spans)


def _is_written_so(span: Span, data: bytes) -> bool:
    if span.type == "uvarint":
        return span.end - span.start == 1 or data[span.end - 1] != 0
    if span.type == "bool":
        return data[span.start] < 2
    if span.type == "int8" and span.role in ("null", "present"):
        return span.value in (-1, 1)
    return True


def _span_bits(span: Span) -> float:
    if span.role == "value":
        return _value_bits(span)
    if span.role in ("length", "count"):
        return _count_bits(int(span.value)) if isinstance(span.value, int) else ABSURD_BITS
    if span.role in ("null", "present"):
        return NULL_BITS
    if span.role == "tags":
        return 0.1 if span.value == 0 else 2.0
    if span.role == "tag":
        return UNKNOWN_TAG_BITS if span.path.endswith(f".tag{span.value}") else KNOWN_TAG_BITS
    return 1.0  # the size of a tagged field follows from its content


def _count_bits(count: int) -> float:
    return 1.0 + 2.0 * log2(count + 1)


def _value_bits(span: Span) -> float:
    value = span.value
    if span.type == "string":
        return _text_bits(_field_name(span.path), str(value))
    if isinstance(value, bool):
        return 1.0
    if isinstance(value, int):
        return _int_bits(span.path, span.type, value)
    if span.type == "uuid":
        return _uuid_bits(value if isinstance(value, bytes) else b"")
    return BYTE_BITS * (span.end - span.start)


def _text_bits(name: str, text: str) -> float:
    words = _WORDS.get(name)
    if words is not None and text in words:
        return 3.0
    bits = sum(5.2 if char in _CHEAP else _odd_char_bits(char) for char in text)
    return bits if words is None else bits + ABSURD_BITS


def _field_name(path: str) -> str:
    return path[path.rfind(".") + 1 :].partition("[")[0]


def _odd_char_bits(char: str) -> float:
    if not char.isprintable():
        return 24.0
    return 7.0 if char.isascii() else 16.0


def _uuid_bits(raw: bytes) -> float:
    if raw == ZERO_UUID:
        return 3.0
    is_random = len(raw) == len(ZERO_UUID) and raw[6] >> 4 == 4 and raw[8] >> 6 == 2
    return UUID_RANDOM_BITS if is_random else BYTE_BITS * len(ZERO_UUID) + ABSURD_BITS


def _int_bits(path: str, kind: str, value: int) -> float:
    worst = BYTE_BITS * FIXED_SIZES[kind] + ABSURD_BITS
    name = _field_name(path)
    if name.endswith("ErrorCode"):
        if value == 0:
            return 0.5
        return 7.0 if -1 <= value <= ERROR_CODE_MAX else worst + ABSURD_BITS
    if name == "ThrottleTimeMs":
        if value == 0:
            return 0.2
        return 20.0 if 0 < value <= HOUR_MS else worst + ABSURD_BITS
    if value in EPOCH_MS and kind == "int64":
        return EPOCH_MS_BITS
    if value < -1:
        return worst
    usual = 2.0 if value == 0 else 3.0 if value == -1 else 3.0 + 1.6 * log2(value + 1)
    if value > SMALL_MAX and not name.endswith(("Offset", "Id", "Bytes", "Timestamp", "Ms")):
        usual += ABSURD_BITS
    return min(usual, worst)
