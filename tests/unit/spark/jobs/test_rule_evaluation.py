"""The rules over rows, without Spark."""

import msgspec

from ottla.health.facts import Group
from ottla.spark.jobs.rule_evaluation import RuleEvaluator
from ottla.wire import uuid_text, versions
from ottla.wire.keyed import encode_framed
from ottla.wire.types.share_state import ShareUpdateKey, ShareUpdateValue

TOPIC_ID = bytes(range(16))
KEY = encode_framed(ShareUpdateKey("workers", TOPIC_ID, 0), versions("ShareUpdateKey")[0])


def update(offset: int, state: int, count: int) -> bytes:
    batch = ShareUpdateValue.StateBatch(offset, offset, state, count)
    return encode_framed(ShareUpdateValue(start_offset=offset, state_batches=(batch,)), 0)


def given_up(offsets: range) -> RuleEvaluator:
    evaluator = RuleEvaluator({}, {uuid_text(TOPIC_ID): "jobs"})
    for offset in offsets:
        for count in range(1, 6):
            evaluator.take(
                1_000 * offset + count, "ShareUpdate", None, update(offset, 4 if count == 5 else 0, count), KEY
            )
    return evaluator


def test_findings_have_all_evidence_that_came():
    (found,) = given_up(range(1, 13)).findings()
    assert found.rule == "poison-records"
    assert [tuple(each) for each in found.evidence["records"]] == [("jobs", 0, offset) for offset in range(1, 13)]


def test_rows_that_do_not_fit_are_counted():
    evaluator = RuleEvaluator({}, {})
    evaluator.take(1, "ShareUpdate", None, b"\0", KEY)
    evaluator.take(2, "ShareUpdate", None, update(1, 0, 1), b"[]")
    evaluator.take(3, "quorum", None, b"{", None)
    assert evaluator.misfits == 3
    assert list(evaluator.findings()) == []


def test_records_of_a_group_are_used_until_it_is_sampled():
    def findings(*told: tuple[int, bool]) -> list[tuple[str, object, str]]:
        evaluator = RuleEvaluator({}, {})
        for number, (epoch, is_sample) in enumerate(told):  # epochs climb for no reason
            fact = Group(group="g", type="consumer", state="Stable", group_epoch=epoch, assignment_epoch=epoch)
            evaluator.take(1_000 * number, "group", None, msgspec.json.encode(fact), is_sample=is_sample)
        return [(each.rule, each.evidence, each.tier) for each in evaluator.findings()]

    climbing = [(epoch, False) for epoch in range(12)]
    assert [rule for rule, _, tier in findings(*climbing) if tier == "R"] == ["epochs-climb"]
    sampled = [*climbing, (12, True)]
    assert findings(*sampled, (1_000, False)) == findings(*sampled) != findings(*climbing)
