"""Samples: one JSON object for each fact that was observed, or for the error that hides it.

The observer writes samples to a topic or to files; the jobs, the report and the command line read them.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ottla.health.facts import FACTS, Fact, Failed, fact_of

__all__ = ["OBSERVATIONS", "UNREACHABLE", "VERSION", "Sample", "decode", "encode", "fact_in", "key_of"]

OBSERVATIONS: Final = "ottla.observations"
"""The default topic of an observer."""


VERSION: Final = 1

UNREACHABLE: Final = "UNREACHABLE"
"""The error of a sample that could not be taken because no node of the cluster answered."""


class Sample(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was seen at `ts` (ms, the observer's clock). Where it could not be seen there is an error and no body.

    `entity` says of what: a group, `group:topic-partition`, a topic, a node; the key of the record is `kind|entity`.
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
    """Raises msgspec.ValidationError or msgspec.DecodeError for what is no sample."""
    return _DECODER.decode(data)


def fact_in(sample: Sample) -> Fact | None:
    """The fact that a sample states, for the rules; None for a kind that they do not know."""
    if sample.error is not None:
        return Failed(what=sample.kind, error=sample.error, unreachable=sample.error == UNREACHABLE)
    if sample.kind not in FACTS or sample.body is None:
        return None
    return fact_of(sample.kind, sample.body)
