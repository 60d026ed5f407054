"""The questions of docs/how-to/sql.md, asked of small tables."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ottla.spark.jobs.tables import TABLES
from ottla.spark.records.types import arrow_schema
from tests.docs.blocks import DOCS, Block, blocks

PAGE: Final = DOCS / "how-to" / "sql.md"
PROGRAM, *QUESTIONS = blocks(PAGE)
AT: Final = 1_794_751_200_000
"""2026-11-15 14:00 UTC."""
SHARE: Final[dict[str, Any]] = {"group": "work", "topic": "t", "partition": 0}
ROWS: Final[dict[str, list[dict[str, Any]]]] = {
    "findings": [
        {"id": "1", "severity": "warning", "state": "open", "sentence": "slow", "since_ms": AT},
        {"id": "2", "severity": "critical", "state": "resolved", "sentence": "was down", "since_ms": AT},
        {"id": "3", "severity": "critical", "state": "open", "sentence": "down", "since_ms": AT + 1},
    ],
    "group_timeline": [
        {"group": "billing", "ts": AT - 1, "seq": 0, "event": "created"},
        {"group": "billing", "ts": AT, "seq": 2, "event": "member_joined", "member": "m-2", "new": "app"},
        {"group": "billing", "ts": AT, "seq": 1, "event": "member_joined", "member": "m-1", "new": "app"},
        {"group": "other", "ts": AT, "seq": 0, "event": "member_joined", "member": "m-3", "new": "once"},
    ],
    "rebalances": [
        {"group": "billing", "trigger": "member_joined", "duration_ms": 2000, "ended_by": "converged", "started": AT},
        {"group": "billing", "trigger": "member_joined", "duration_ms": 4000, "ended_by": "converged", "started": AT},
        {"group": "other", "trigger": "unknown", "duration_ms": None, "ended_by": "open", "started": AT},
    ],
    "consumer_lag": [
        {"group": "billing", "topic": "t", "partition": 0, "window_start": AT, "lag_records": 9, "lag_seconds": 90.0},
        {"group": "billing", "topic": "t", "partition": 0, "window_start": AT + 10_000, "lag_records": 4, "eta_s": 2.0},
        {"group": "billing", "topic": "t", "partition": 1, "window_start": AT, "lag_records": 3, "lag_seconds": 5.0},
        {"group": "other", "topic": "t", "partition": 0, "window_start": AT, "lag_records": 1, "lag_seconds": 70.0},
    ],
    "share_delivery": [
        SHARE | {"window_start": AT, "delivered": 3, "redelivered": 1, "poison": [7]},
        SHARE | {"window_start": AT + 60_000, "delivered": 1, "redelivered": 0, "poison": [7, 3]},
        {"group": "work", "partition": -1, "window_start": AT, "poison": []},
    ],
    "quorum_lag": [
        {"replica": 1, "window_start": AT, "leader": 2, "leader_epoch": 5, "elections": 1, "leaderless_ms": 40},
        {"replica": 2, "window_start": AT, "leader": 2, "leader_epoch": 5, "elections": 1, "leaderless_ms": 40},
        {"replica": 1, "window_start": AT + 10_000, "leader": 2, "leader_epoch": 5, "elections": 0, "leaderless_ms": 0},
    ],
    "task_movement": [
        {"group": "app", "task": "0_0", "kind": "moved", "from_process": "a", "to_process": "b", "started": AT},
        {"group": "app", "task": "0_1", "kind": "moved", "from_process": "a", "to_process": "b", "started": AT},
    ],
    "stability": [],
}
ANSWERS: Final[dict[str, list[tuple[Any, ...]]]] = {
    "What is wrong right now?": [("critical", "down"), ("warning", "slow")],
    "What happened to this group, and when?": [("member_joined", "m-1", "app"), ("member_joined", "m-2", "app")],
    "Which groups rebalance most, and why?": [("billing", "member_joined", 2, 6.0), ("other", "unknown", 1, None)],
    "How long do rebalances take?": [("billing", 2, 3000.0, 4000)],
    "Which clients keep joining?": [("billing", "app", 2)],
    "Which groups are furthest behind?": [("billing", 7, 5.0, 2.0), ("other", 1, 70.0, None)],
    "Since when is a group behind?": [("billing", "t", 0, 90.0), ("other", "t", 0, 70.0)],
    "How much work do share groups do twice?": [("work", 4, 1, Decimal("25.0"))],
    "Which records can no consumer process?": [("work", "t", 0, 3), ("work", "t", 0, 7)],
    "When did the quorum elect a leader, and how long was there none?": [(2, 5, 40)],
    "Which streams tasks move, and from where to where?": [("app", "moved", "a", "b", 2, None)],
}
"""Heading -> the rows, without times and columns that have no value anywhere."""
LEFT_OUT: Final = {"since", "at", "last_join", "first_behind", "hour", "old", "detail"}


@pytest.fixture(scope="module")
def views(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Spark with a view of each table, as the page makes them."""
    out = tmp_path_factory.mktemp("out")
    for name, table in TABLES.items():
        day = out / "tables" / name / "run_date=2026-11-15"
        day.mkdir(parents=True)
        schema = arrow_schema([each for each in table.columns if each.name != "run_date"])
        rows = [{"cluster": "c", "source": "records", **row} for row in ROWS[name]]
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), day / "part-0.parquet")
    exec(compile(PROGRAM.text.replace("out/tables", str(out / "tables")), str(PAGE), "exec"), {})
    return spark


def heading(block: Block) -> str:
    """The heading above a block."""
    return [line for line in PAGE.read_text().splitlines()[: block.line] if line.startswith("## ")][-1][3:]


def test_every_question_has_an_answer_here():
    assert [heading(each) for each in QUESTIONS] == list(ANSWERS)
    assert len(QUESTIONS) >= 10


@pytest.mark.parametrize("question", QUESTIONS, ids=heading)
def test_the_answer(question: Block, views: Any):
    frame = views.sql(question.text)
    kept = [f"`{name}`" for name in frame.columns if name not in LEFT_OUT]
    assert [tuple(row) for row in frame.select(*kept).collect()] == ANSWERS[heading(question)]
