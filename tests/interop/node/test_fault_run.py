"""Ten faults on a cluster of real nodes with Kafka's own time-outs; `python -m tools.fault_run` does a hundred."""

from tools.fault_run.plan import plan
from tools.fault_run.run import run

PATIENCE_S = 20
"""Tests run beside each other: how soon everybody knows the leader is measured by the command alone."""


def test_ten_faults_lose_nothing() -> None:
    report = run(plan(10, seed=1), truth_max_s=PATIENCE_S)
    assert report.problems == []
    assert report.faults == 10
    assert report.answered > 10
