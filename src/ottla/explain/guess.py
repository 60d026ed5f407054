"""Guesses which message some bytes are.

Every message is tried in every version and every wrapping: bare, after a header, after size and header, after the type
or version that records of internal topics have. Readings that reach the last byte, and that an encoder would write as
the same bytes, are ranked by `ottla.explain.likelihood`; versions with the same layout become one candidate. Only if no
reading reaches the end are incomplete ones ranked.

`sureness` is the best candidate's share against the next *different* message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from math import inf
from struct import Struct as Layout
from typing import Literal, NamedTuple

from ottla.explain.likelihood import BYTE_BITS, is_canonical, reading_bits
from ottla.wire import frames, keyed
from ottla.wire.compile import message_shape
from ottla.wire.fault import WireError
from ottla.wire.index import MESSAGES
from ottla.wire.shape import Struct
from ottla.wire.support import Refused, read_unknown_tags, read_varint
from ottla.wire.trace import Trace, trace

__all__ = [
    "RECORD_BATCH",
    "Candidate",
    "Verdict",
    "Wrapping",
    "guess",
    "guess_name",
    "guess_response",
    "split_frames",
]

RECORD_BATCH = "RecordBatch"
"""The name of a candidate that is a record batch or a run of them, such as a log segment."""

Before = Literal["nothing", "request header", "response header", "type", "version", "frame"]

_SIZE = Layout(">i")
_INT16 = Layout(">h")
_BATCH_START = Layout(">qiib")
_CORRELATION_BITS = 20.0
_WRAP_BITS = {"nothing": 6.0, "type": 3.0, "version": 3.0, "frame": 3.0, "response header": 4.0}
_API_BITS = 10.0  # one of 91 APIs in one of its versions
_BROKEN_BITS = 40.0
_CERTAIN_BITS = 200.0  # a correct checksum or header is no accident
_SURE_SCALE_BITS = 6.0
_CANDIDATES_MAX = 5


class Wrapping(NamedTuple):
    """The bytes before the body: a size or none, then a header or the framing of a record."""

    has_size: bool
    before: Before


class Candidate(NamedTuple):
    """A message that the bytes may be."""

    name: str
    versions: tuple[int, ...]
    """All versions that read the bytes alike; empty for a record batch."""
    wrapping: Wrapping
    body_start: int
    gain_bits: float
    """How many bits it saves against random bytes."""
    error: WireError | None
    """The error that ends the reading; None if it reaches the last byte."""

    @property
    def version(self) -> int:
        """The newest stable version, or the newest if none is stable."""
        if not self.versions:
            return -1
        entry = MESSAGES[self.name]
        stable = [version for version in self.versions if not (entry.unstable and version == entry.high)]
        return max(stable or self.versions)


class Verdict(NamedTuple):
    """Candidates, best first, no two with the same name."""

    candidates: tuple[Candidate, ...]
    sureness: float
    """0 to 1."""
    size: int
    """The size of the input."""

    @property
    def best(self) -> Candidate | None:
        return self.candidates[0] if self.candidates else None

    @property
    def is_convincing(self) -> bool:
        """Whether the best candidate is hardly an accident."""
        best = self.best
        return best is not None and best.error is None and best.gain_bits >= 24.0

    @property
    def phrase(self) -> str:
        """How sure, in words."""
        best = self.best
        if best is None:
            return "nothing fits"
        if best.error is not None:
            return (
                "by its header, though not whole" if best.wrapping.before == "request header" else "half of it, at best"
            )
        if self.sureness >= 0.995:
            return "certain"
        if self.sureness >= 0.9:
            return "nearly certain"
        return "probably" if self.sureness >= 0.7 else "one of several that fit"


class _Reading(NamedTuple):
    name: str
    version: int
    wrapping: Wrapping
    body_start: int
    extra_bits: float
    """The cost of the wrapping."""


# --- the ways in ------------------------------------------------------------------------------------------------------


def guess(data: bytes) -> Verdict:
    """The messages that bytes may be, wrapped or not."""
    batch = _batch_candidate(data)
    if batch is not None:
        return Verdict((batch,), 1.0 if batch.error is None else 0.9, len(data))
    request = _request_candidate(data)
    if request is not None and request.error is None:
        return Verdict((request,), 0.999, len(data))
    found = _ranked(data, _all_readings(data))
    if request is not None and (found is None or found[0].gain_bits < request.gain_bits):
        return _verdict([request, *(found or [])], data)
    return _verdict(found or _broken(data), data)


def guess_name(data: bytes, names: Iterable[str], version: int | None = None) -> Verdict:
    """Guesses the wrapping, and the version if it is not given, of a message with one of these names."""
    wanted = frozenset(names)
    readings = [
        reading
        for reading in (*_all_readings(data), *_request_readings(data), *_header_readings())
        if reading.name in wanted and version in (None, reading.version)
    ]
    return _verdict(_ranked(data, readings) or _ranked(data, readings, broken=True) or [], data)


@lru_cache(maxsize=4)  # the search for frames and the printer guess the same bytes
def guess_response(data: bytes) -> Verdict:
    """The response that the content of a frame may be: correlation id, perhaps tags, body."""
    found = _ranked(data, _response_readings(data, 0, has_size=True))
    return _verdict(found or [], data)


def split_frames(data: bytes) -> list[bytes] | None:
    """The frames, with their sizes, of bytes that hold several in sequence, such as a recorded stream.

    The last one may be cut off. None if the bytes are anything else.
    """
    found = []
    at = 0
    while at + _SIZE.size <= len(data):
        (size,) = _SIZE.unpack_from(data, at)
        if not _SIZE.size <= size <= frames.FRAME_MAX_BYTES:
            return None
        found.append(data[at : at + _SIZE.size + size])
        at += _SIZE.size + size
    is_several = len(found) > 1 and at >= len(data)
    return found if is_several and _is_message(found[0]) and _is_message(found[1]) else None


def _is_message(frame: bytes) -> bool:
    """Whether a frame, which may be cut off, is a request or a response."""
    if not _has_size(frame):
        return True
    request = _request_candidate(frame)
    return (request is not None and request.error is None) or guess_response(frame[_SIZE.size :]).is_convincing


def _verdict(found: list[Candidate], data: bytes) -> Verdict:
    best = found[:_CANDIDATES_MAX]
    if not best:
        return Verdict((), 0.0, len(data))
    ahead = best[0].gain_bits - best[1].gain_bits if len(best) > 1 else inf
    share = 1.0 / (1.0 + 2.0 ** (-ahead / _SURE_SCALE_BITS))
    # Even a single candidate may be an accident if it explains little.
    alone = 1.0 / (1.0 + 2.0 ** (-max(best[0].gain_bits, 0.0) / _SURE_SCALE_BITS))
    return Verdict(tuple(best), min(share, alone), len(data))


# --- readings ---------------------------------------------------------------------------------------------------------


def _all_readings(data: bytes) -> Iterator[_Reading]:
    for name, version in _pairs():
        yield _Reading(name, version, Wrapping(False, "nothing"), 0, _WRAP_BITS["nothing"])
        if keyed.framing(name):
            yield from _framed_reading(name, version, data)
    yield from _response_readings(data, 0, has_size=False)
    if _has_size(data):
        yield from _response_readings(data, _SIZE.size, has_size=True)


def _framed_reading(name: str, version: int, data: bytes) -> Iterator[_Reading]:
    """Records of internal topics: after their type, version or both."""
    form = keyed.framing(name)
    if form == "frame-varints":
        try:
            frame_version, at = read_varint(data, 0)
            record_type, at = read_varint(data, at)
            found, at = read_varint(data, at)
        except (IndexError, Refused):
            return
        if (frame_version, record_type, found) == (1, MESSAGES[name].key, version):
            yield _Reading(name, version, Wrapping(False, "frame"), at, _WRAP_BITS["frame"])
        return
    if len(data) < _INT16.size:
        return
    (number,) = _INT16.unpack_from(data)
    if form == "type16" and number == MESSAGES[name].key:
        yield _Reading(name, version, Wrapping(False, "type"), _INT16.size, _WRAP_BITS["type"])
    elif form == "version16" and number == version:
        yield _Reading(name, version, Wrapping(False, "version"), _INT16.size, _WRAP_BITS["version"])


def _response_readings(data: bytes, start: int, *, has_size: bool) -> Iterator[_Reading]:
    """Responses after their header, whose version follows from the API's."""
    at = start + _SIZE.size
    if len(data) < at:
        return
    (correlation_id,) = _SIZE.unpack_from(data, start)
    if correlation_id < 0:
        return
    try:
        tag_count, behind_tags = read_varint(data, at)
        if tag_count:
            behind_tags = read_unknown_tags(data, behind_tags, tag_count)[1]
    except (IndexError, Refused):
        behind_tags = -1
    bits = _WRAP_BITS["response header"] + (0.0 if has_size else _CORRELATION_BITS)
    for name, version in _pairs():
        entry = MESSAGES[name]
        if entry.kind == "response" and entry.key is not None:
            flexible = frames.response_header_version(entry.key, version)
            body_start = behind_tags if flexible else at
            if body_start >= 0:
                yield _Reading(name, version, Wrapping(has_size, "response header"), body_start, bits)


def _request_readings(data: bytes) -> Iterator[_Reading]:
    """The request whose header is at the start, or after a size."""
    for start in (_SIZE.size, 0) if _SIZE.size < len(data) else (0,):
        try:
            header, at = frames.read_request_header(data[start:])
        except WireError:
            continue
        name = f"{frames.api_names()[header.request_api_key]}Request"
        entry = MESSAGES[name]
        if entry.low <= header.request_api_version <= entry.high and (header.client_id or "").isprintable():
            wrapping = Wrapping(start > 0, "request header")
            yield _Reading(name, header.request_api_version, wrapping, start + at, _API_BITS)


def _header_readings() -> Iterator[_Reading]:
    """Headers are not messages, so they are never guessed; but they can be named."""
    for name, entry in MESSAGES.items():
        if entry.kind == "header":
            for version in range(entry.low, entry.high + 1):
                yield _Reading(name, version, Wrapping(False, "nothing"), 0, _WRAP_BITS["nothing"])


def _request_candidate(data: bytes) -> Candidate | None:
    """A request after its header, whole or truncated."""
    candidates = []
    for reading in _request_readings(data):
        candidate = _candidate(data, reading)
        is_cut = reading.wrapping.has_size and not _has_size(data)
        if candidate.error is None and not is_cut:
            return candidate._replace(gain_bits=candidate.gain_bits + _CERTAIN_BITS)
        if reading.wrapping.has_size and _SIZE.unpack_from(data)[0] >= len(data) - _SIZE.size:
            candidates.append(candidate._replace(gain_bits=candidate.gain_bits + _CERTAIN_BITS / 4))
    return candidates[0] if candidates else None


def _has_size(data: bytes) -> bool:
    return len(data) > _SIZE.size and _SIZE.unpack_from(data)[0] == len(data) - _SIZE.size


# --- judging ----------------------------------------------------------------------------------------------------------


@cache
def _pairs() -> tuple[tuple[str, int], ...]:
    """Every message in every version, but no headers."""
    return tuple(
        (name, version)
        for name, entry in MESSAGES.items()
        if entry.kind != "header"
        for version in range(entry.low, entry.high + 1)
    )


@cache
def _shape(name: str, version: int) -> Struct:
    return message_shape(name, version)


def _read(data: bytes, reading: _Reading) -> Trace:
    # Readings are judged by their spans; building the values would cost more than all the rest.
    return trace(_shape(reading.name, reading.version), lambda _: dict, data[reading.body_start :])


def _candidate(data: bytes, reading: _Reading) -> Candidate:
    traced = _read(data, reading)
    body = data[reading.body_start :]
    bits = reading_bits(traced.spans) + reading.extra_bits
    error = traced.error
    if error is not None:
        covered = traced.spans[-1].end if traced.spans else 0
        bits += BYTE_BITS * (len(body) - covered) + _BROKEN_BITS
    elif not is_canonical(traced.spans, body):
        error = WireError(reading.name, None, "an encoder would have written it otherwise")
    gain = BYTE_BITS * len(data) - bits
    return Candidate(reading.name, (reading.version,), reading.wrapping, reading.body_start, gain, error)


def _ranked(data: bytes, readings: Iterable[_Reading], *, broken: bool = False) -> list[Candidate] | None:
    """The candidates that read to the end (or, if `broken`, all), one for each name; None if there is none."""
    best: dict[str, Candidate] = {}
    for reading in readings:
        candidate = _candidate(data, reading)
        if candidate.error is not None and not broken:
            continue
        other = best.get(candidate.name)
        if other is None or candidate.gain_bits > other.gain_bits + 1e-9:
            best[candidate.name] = candidate
        elif abs(candidate.gain_bits - other.gain_bits) <= 1e-9 and candidate.wrapping == other.wrapping:
            best[candidate.name] = other._replace(versions=(*other.versions, *candidate.versions))
    return sorted(best.values(), key=lambda candidate: -candidate.gain_bits) or None


def _broken(data: bytes) -> list[Candidate]:
    """Candidates for a truncated message: those that explain its beginning best."""
    found = _ranked(data, _all_readings(data), broken=True) or []
    return [candidate for candidate in found if candidate.gain_bits > 0]


def _batch_candidate(data: bytes) -> Candidate | None:
    """A record batch or message set at the start, whose magic, lengths and checksum are right."""
    from ottla.wire.batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, split_batches

    if len(data) < _BATCH_START.size:
        return None
    _, length, _, magic = _BATCH_START.unpack_from(data)
    if not 0 <= magic <= 2 or length < 14:
        return None
    wrapping = Wrapping(False, "nothing")
    try:
        first = next(split_batches(data), None)
        if first is not None:
            error = None if first.is_valid else WireError("RecordBatch.crc", 17, "the checksum does not fit")
            if error is None or (magic == 2 and _looks_like_batch(data)):
                return Candidate(RECORD_BATCH, (), wrapping, 0, BYTE_BITS * len(data), error)
        elif magic == 2 and len(data) >= HEADER_BYTES and _looks_like_batch(data):
            reason = f"the batch has {length + LOG_OVERHEAD_BYTES} bytes, {len(data)} are there"
            return Candidate(RECORD_BATCH, (), wrapping, 0, 0.0, WireError("RecordBatch", len(data), reason))
    except WireError:
        return None
    return None


def _looks_like_batch(data: bytes) -> bool:
    """Whether the header of a batch is plausible, if its checksum cannot be computed."""
    from ottla.wire.batch import read_header

    try:
        batch = read_header(data)
    except WireError:
        return False
    is_counted = 0 <= batch.record_count <= batch.last_offset_delta + 1
    return is_counted and batch.base_offset >= 0 and batch.attributes & ~0x7F == 0 and batch.producer_id >= -1
