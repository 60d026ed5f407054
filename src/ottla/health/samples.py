"""Samples: one JSON object for each fact that was observed, or for the error that hides it.

The observer writes samples to a topic or to files; the jobs, the report and the command line read them.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ottla.health.facts import FACTS, Fact, Failed, fact_of

__all__ = ["OBSERVATIONS", "UNREACHABLE", "VERSION", "Sample", "decode", "encode", "fact_in", "key_of"]

OBSERVATIONS: Final = "ottla.observations"
"""The topic to which an observer writes by default."""


VERSION: Final = 1

UNREACHABLE: Final = "UNREACHABLE"
"""The error of a sample that could not be taken because no node of the cluster answered."""


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fact that was observed at `ts` (ms, the observer's clock), or the error that hides it; then there is no body.

    `entity` is its subject: a group, `group:topic-partition`, a topic, a node. The key of the record is `kind|entity`.
    """

    v: int = VERSION
    kind: str
    ts: int
    cluster: str
    observer: str
    seq: int
    entity: str = ""
    took_ms: float = 0.0
    error: str | None = None
    heartbeat: bool = False
    dropped: int = 0
    body: dict[str, Any] | None = None


_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Sample)


def key_of(sample: Sample) -> bytes:
    return f"{sample.kind}|{sample.entity}".encode()


def encode(sample: Sample) -> bytes:
    return _ENCODER.encode(sample)


def decode(data: bytes | str) -> Sample:
    """Raises msgspec.ValidationError or msgspec.DecodeError if the data is not a sample."""
    return _DECODER.decode(data)


def fact_in(sample: Sample) -> Fact | None:
    """The fact in a sample; None for a kind that the rules do not know."""
    if sample.error is not None:
        return Failed(what=sample.kind, error=sample.error, unreachable=sample.error == UNREACHABLE)
    if sample.kind not in FACTS or sample.body is None:
        return None
    return fact_of(sample.kind, sample.body)
