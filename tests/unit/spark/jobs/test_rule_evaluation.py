"""The rules over rows, without Spark."""

import json

from ottla.spark.jobs.rule_evaluation import RuleEvaluator

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
KEY = json.dumps({"groupId": "workers", "topicId": TOPIC_ID, "partition": 0})


def update(offset: int, state: int, count: int) -> str:
    batch = {"firstOffset": offset, "lastOffset": offset, "deliveryState": state, "deliveryCount": count}
    return json.dumps({"startOffset": offset, "stateBatches": [batch]})


def given_up(offsets: range) -> RuleEvaluator:
    evaluator = RuleEvaluator({}, {TOPIC_ID: "jobs"})
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
    evaluator.take(1, "ShareUpdate", None, "{", KEY)
    evaluator.take(2, "ShareUpdate", None, update(1, 0, 1), "[]")
    assert evaluator.misfits == 2
    assert list(evaluator.findings()) == []
