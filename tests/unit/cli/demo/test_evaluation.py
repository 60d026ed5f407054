import pytest

from ottla.cli.demo import evaluation
from ottla.cli.demo.evaluation import StateRecord, rule_results, why_no_spark
from ottla.cli.doctor import Check
from ottla.health.samples import Sample
from ottla.wire import uuid_text
from ottla.wire.keyed import encode_framed
from ottla.wire.types.share_state import ShareUpdateKey, ShareUpdateValue

TOPIC_ID = bytes(range(16))
ID = uuid_text(TOPIC_ID)


def cluster(seq: int, ts: int, error: str | None = None) -> Sample:
    body = None if error else {"brokers": [{"id": 1, "host": "h", "port": 9, "reachable": True}]}
    return Sample(kind="cluster", ts=ts, cluster="c", observer="o", seq=seq, error=error, body=body)


def test_the_rules_look_at_samples():
    down = [cluster(seq, seq * 1_000, "UNREACHABLE") for seq in range(5, 20)]
    facts = rule_results([cluster(1, 1_000), *down, *(cluster(seq, seq * 1_000) for seq in range(20, 60))])
    (found,) = facts["findings"]
    assert (found["rule"], found["state"], found["subject"]["name"]) == ("node-unreachable", "resolved", "1")
    assert found["since_ms"] == 5_000
    assert facts["range"] == {"from_ms": 1_000, "to_ms": 59_000}
    assert any(each["rule"] == "member-lost" for each in facts["unseen"])


def test_what_is_open_has_no_end():
    facts = rule_results([cluster(1, 1_000), *(cluster(seq, seq * 1_000, "UNREACHABLE") for seq in range(2, 20))])
    assert [(each["state"], each["until_ms"]) for each in facts["findings"]] == [("open", None)]


def state_sample(seq: int, offset: int, poison: int) -> Sample:
    body = {"group": "workers", "topic": "jobs", "topic_id": ID, "partition": 0, "offset": offset, "written_ms": 1_000,
            "batches": [{"first": poison, "last": poison, "state": 4, "count": 5}]}  # fmt: skip
    return Sample(kind="share_state", ts=2_000, cluster="c", observer="o", seq=seq, body=body)


def state_record(offset: int, poison: int, state: int = 4) -> StateRecord:
    value = ShareUpdateValue(start_offset=-1, state_batches=(ShareUpdateValue.StateBatch(poison, poison, state, 5),))
    key = encode_framed(ShareUpdateKey("workers", TOPIC_ID, 0), 0)
    return StateRecord(1_000, offset, "ShareUpdate", key, encode_framed(value, 0))


def test_what_records_tell_no_more_is_taken_from_samples():
    samples = [state_sample(1, 40, 7), state_sample(2, 41, 8)]
    for states in ([], [state_record(41, 8)], [state_record(40, 7), state_record(41, 8)]):
        (found,) = rule_results(samples, states, {ID: "jobs"})["findings"]
        assert found["evidence"]["records"] == [["jobs", 0, 7], ["jobs", 0, 8]]


def test_what_both_tell_counts_once():
    (found,) = rule_results([state_sample(1, 41, 8)], [state_record(41, 9)], {ID: "jobs"})["findings"]
    assert found["evidence"]["records"] == [["jobs", 0, 9]]


def test_nothing_was_seen():
    assert rule_results([])["findings"] == []


def test_why_there_is_no_spark(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(evaluation, "java", lambda: Check("Java", "missing", "11.0.2 in /opt/java"))
    assert "Java 17 or newer: 11.0.2" in (why_no_spark() or "")
    monkeypatch.setattr(evaluation, "find_spec", lambda name: None)
    assert "pyspark is not installed" in (why_no_spark() or "")
