from __future__ import annotations

import msgspec
import pytest

from ottla.health.facts import Failed, Group
from ottla.health.samples import UNREACHABLE, Sample, decode, encode, fact_in, key_of

SAMPLE = Sample(
    kind="group",
    ts=1_000,
    cluster="c",
    observer="o",
    seq=7,
    entity="orders",
    body={"group": "orders", "type": "consumer", "state": "Stable", "group_epoch": 3},
)


def test_what_is_written_is_read_back() -> None:
    assert decode(encode(SAMPLE)) == SAMPLE


def test_the_key_tells_kind_and_entity() -> None:
    assert key_of(SAMPLE) == b"group|orders"


def test_a_sample_states_a_fact() -> None:
    assert fact_in(SAMPLE) == Group(group="orders", type="consumer", state="Stable", group_epoch=3)


@pytest.mark.parametrize(("error", "unreachable"), [(UNREACHABLE, True), ("GROUP_AUTHORIZATION_FAILED", False)])
def test_what_could_not_be_seen_is_a_fact_too(error: str, unreachable: bool) -> None:
    failed = msgspec.structs.replace(SAMPLE, error=error, body=None)
    assert fact_in(failed) == Failed(what="group", error=error, unreachable=unreachable)


def test_kinds_of_later_versions_are_passed_over() -> None:
    assert fact_in(msgspec.structs.replace(SAMPLE, kind="weather", body={})) is None


def test_what_is_no_sample_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(b'{"kind": 1}')
