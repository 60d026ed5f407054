"""The facts: what the tables say, told for people and for programs."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import dataset

import ottla.health.rules  # noqa: F401  enters the rules
from ottla.health import RULES
from ottla.spark.report import facts_of, facts_of_findings, lag
from ottla.spark.report.areas import AREAS
from ottla.spark.report.findings import incidents as marks_of
from ottla.spark.report.part import KEPT_ROWS
from ottla.spark.report.thin import POINTS_MAX
from tests.unit.spark.report import story
from tests.unit.spark.report.story import GENERATED_MS, START_MS, at, finding, rebalance, run_of, tables_of

Facts = dict[str, Any]


@pytest.fixture(scope="module")
def incidents() -> Facts:
    return facts_of(*story.incidents(), GENERATED_MS)


def area(facts: Facts, name: str) -> Facts:
    return next(each for each in facts["areas"] if each["id"] == name)


def figure(facts: Facts, name: str) -> Facts:
    return next(each for each in facts["figures"] if each["id"] == name)


def rows_of(facts: Facts, name: str) -> list[Facts]:
    rows: list[Facts] = facts["tables"][name]["rows"]
    return rows


def test_facts_are_json(incidents: Facts):
    assert json.loads(json.dumps(incidents, allow_nan=False)).keys() == incidents.keys()
    assert (incidents["v"], incidents["generated"]) == (1, GENERATED_MS)
    assert incidents["range"] == {"from_ms": story.START_MS, "to_ms": story.END_MS}


def test_every_rule_belongs_to_one_area():
    assert sorted(rule for each in AREAS for rule in each.rules) == sorted(RULES)


# --- findings and lights ----------------------------------------------------------------------------------------------


def test_problems_come_first_and_what_is_open_before_what_is_over(incidents: Facts):
    order = ["poison-records", "node-unreachable", "redelivery-storm", "member-lost", "single-voter",
             "quorum-leader-changed"]  # fmt: skip
    assert [each["rule"] for each in incidents["findings"]] == order
    assert incidents["headline"]["sentence"] == "1 open problem, 3 resolved"
    assert incidents["headline"]["open"] == {"critical": 0, "warning": 1, "notice": 1}


def test_a_finding_says_why_it_matters_and_where_to_look(incidents: Facts):
    [lost] = [each for each in incidents["findings"] if each["rule"] == "member-lost"]
    assert lost["why"] == RULES["member-lost"].why
    assert lost["subject"] == {"kind": "group", "name": "billing", "member": "billing-2"}
    assert lost["evidence"]["partitions"] == ["orders-2", "orders-3"]
    assert lost["see"][0] == {"text": "Epochs of billing", "href": "#timeline-2"}


def test_lights(incidents: Facts):
    states = {each["id"]: each["state"] for each in incidents["areas"]}
    assert states == {"cluster": "recovered", "quorum": "notice", "groups": "recovered", "streams": "ok",
                      "share": "warning", "lag": "ok", "data": "ok"}  # fmt: skip
    assert area(incidents, "share")["open"] == {"critical": 0, "warning": 1, "notice": 0}
    assert area(incidents, "share")["resolved"] == 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([], "No problems found"),
        (["notice"], "No problems, 1 notice"),
        (["critical"], "1 open problem"),
        (["critical", "warning"], "2 open problems"),
        (["over"], "No open problems, 1 resolved"),
        (["warning", "over", "over"], "1 open problem, 2 resolved"),
    ],
)
def test_the_headline(given: list[str], sentence: str):
    rows = [
        finding("lag-growing", "x", 1, 2 if kind == "over" else None, severity="critical" if kind == "over" else kind,
                subject=("group", str(number)))
        for number, kind in enumerate(given)
    ]  # fmt: skip
    assert facts_of(tables_of({"findings": rows}), run_of(), 0)["headline"]["sentence"] == sentence


def test_nobody_looked_is_not_the_same_as_nothing_found():
    nothing = facts_of({}, {}, 0)
    assert nothing["headline"]["sentence"] == "No data"
    assert {each["state"] for each in nothing["areas"]} == {"unseen"}
    looked = facts_of({}, run_of(seen=None), 0)
    assert area(looked, "streams")["state"] == "none"
    assert area(looked, "cluster")["state"] == "ok"
    blind = run_of(unseen=[{"rule": rule, "missing": [], "why": ""} for rule in RULES])
    assert area(facts_of({}, blind, 0), "streams")["state"] == "unseen"


def test_findings_alone_are_enough():
    rows = story.finding_rows()["findings"]
    bare = facts_of_findings([{"cluster": story.CLUSTER, **row} for row in rows], run_of(), GENERATED_MS)
    whole = facts_of(tables_of({"findings": rows}), run_of(), GENERATED_MS)
    assert [each["id"] for each in bare["findings"]] == [each["id"] for each in whole["findings"]]
    assert bare["headline"] == whole["headline"]
    assert bare["tables"].keys() == whole["tables"].keys()


# --- gaps -------------------------------------------------------------------------------------------------------------


def test_gaps_between_samples():
    windows = [*range(0, 60_000, 10_000), 300_000, 310_000]
    lag = [{"group": "g", "topic": "t", "topic_id": "t", "partition": 0, "window_start": ms, "high_watermark": 5,
            "lag_records": 0, "source": "samples"} for ms in windows]  # fmt: skip
    drawn = figure(facts_of(tables_of({"consumer_lag": lag}), run_of(), 0), "lag-records")
    assert drawn["gaps"] == [{"from_ms": 60_000, "to_ms": 300_000}]
    written = [{**row, "source": "records"} for row in lag]
    assert figure(facts_of(tables_of({"consumer_lag": written}), run_of(), 0), "lag-records")["gaps"] == []


# --- topics -----------------------------------------------------------------------------------------------------------


def test_what_was_written_to_topics():
    """Two groups read orders; a partition of it was not sampled to the end."""
    ends = {("orders", 0): (100, 300, 700), ("orders", 1): (0, 40), ("quiet", 0): (5, 5)}
    rows = [
        {"group": group, "topic": topic, "topic_id": topic, "partition": partition, "window_start": 10_000 * number,
         "high_watermark": end, "lag_records": 0, "rate_in": (end - before[number - 1]) / 10 if number else None}
        for (topic, partition), before in ends.items()
        for group in (("a", "b") if topic == "orders" else ("a",))
        for number, end in enumerate(before)
    ]  # fmt: skip
    facts = facts_of(tables_of({"consumer_lag": rows}), run_of(), 0)
    names = ("topic", "partitions", "records", "per_second", "peak_per_second", "groups")
    assert [tuple(row[name] for name in names) for row in rows_of(facts, "topics")] == [
        ("orders", 2, 640, 34.0, 40.0, 2),
        ("quiet", 1, 0, 0.0, 0.0, 1),
    ]


# --- groups -----------------------------------------------------------------------------------------------------------


def test_a_row_for_each_group(incidents: Facts):
    [billing] = [row for row in rows_of(incidents, "groups") if row["group"] == "billing"]
    assert billing == {
        "cluster": story.CLUSTER, "group": "billing", "type": "consumer", "state": "Stable", "members": 2,
        "group_epoch": 4, "assignment_epoch": 4, "epochs": 4, "joins": 3, "leaves": 0, "fences": 1, "rebalances": 4,
        "converged_share": 0.98, "longest_rebalance_ms": 900, "alarm": None, "alarm_reason": None, "findings": 1,
        "open_findings": 0,
    }  # fmt: skip
    assert [row["group"] for row in rows_of(incidents, "groups")] == ["risk-checks", "billing", "word-totals", "audit"]
    assert area(incidents, "groups")["numbers"]["by_type"] == {"classic": 1, "consumer": 1, "share": 1, "streams": 1}


def test_epochs_over_time(incidents: Facts):
    drawn = figure(incidents, "timeline-2")
    lines = {line["name"]: line["points"] for line in drawn["lines"]}
    assert lines["group epoch"] == [(at(10), 1), (at(11.5), 2), (at(13), 3), (at(66.3), 4), (story.END_MS, 4)]
    assert lines["billing-2"][-1] == (at(66.3), 3), "the line of a member ends with it"
    assert lines["billing-3"][-1] == (story.END_MS, 4)
    assert {"from_ms": at(66.3), "to_ms": at(67.2), "name": "epoch 4: left or expired, converged"} in drawn["spans"]


def test_members_beyond_the_first_are_one_line():
    told = story.joining([f"m{number}" for number in range(9)], 1)
    tables = tables_of({"group_timeline": story.events("many", "consumer", told)})
    lines = facts_of(tables, run_of(), 0)["figures"][0]["lines"]
    assert [line["name"] for line in lines][2:] == [*(f"m{number}" for number in range(6)), "lowest of 3 other members"]
    assert lines[-1]["points"][-1] == (story.END_MS, 9)


def test_members_are_called_by_their_client_ids():
    one, two, three = "RltnWzI8R92xNQ6Hiohs0A", "XaWJBn2FT3WzwUert71V9w", "Pk9zEcxFRcOymBCUYcMzEQ"
    told = [(1, "member_joined", {"member": member, "new": client}) for member, client in
            ((one, "risk-1"), (two, "risk-2"), (three, "risk-2"))]  # fmt: skip
    told += [(2, "member_epoch", {"member": member, "new": "1"}) for member in (one, two, three)]
    moved = rebalance("g", "share", 1, 1, 2, trigger_members=[one, "nobody-knows"])
    tables = tables_of({"group_timeline": story.events("g", "share", told), "rebalances": [moved]})
    facts = facts_of(tables, run_of(), 0)
    assert [line["name"] for line in facts["figures"][0]["lines"]] == ["risk-1", f"risk-2 {two}", f"risk-2 {three}"]
    assert rows_of(facts, "rebalances")[0]["who"] == ["risk-1", "nobody-knows"]


def test_processes_are_called_by_what_their_threads_have_in_common():
    joined = {"member": "m", "new": "word-totals-1-StreamThread-2-consumer"}
    gained = {"member": "m", "new": '["0_0"]', "detail": '{"role": "active", "process": "p"}'}
    told = [(1, "member_joined", joined), (1, "partition_gained", gained)]
    facts = facts_of(tables_of({"group_timeline": story.events("g", "streams", told)}), run_of(), 0)
    assert facts["figures"][0]["names"] == {"p": "word-totals-1"}


def test_what_began_rebalances(incidents: Facts):
    rows = rows_of(incidents, "triggers")
    counts = {(row["phase"], row["trigger"]): (row["count"], row["converged"], row["longest_ms"]) for row in rows}
    assert counts == {
        ("running", "left_or_expired"): (1, 1, 900),
        ("running", "member_joined"): (1, 1, 1800),
        ("running", "metadata_changed"): (1, 1, 1600),
        ("starting", "member_joined"): (9, 9, 1000),
    }
    assert (rows[-1]["partitions_moved"], rows[1]["tasks_moved"]) == (10.0, 2)
    groups = next(each for each in incidents["areas"] if each["id"] == "groups")
    assert groups["sentence"].endswith("12 rebalances, 3 of them in running groups, the longest took 1.8 s")


def test_dots_near_each_other_are_one():
    rows = [rebalance("g", "consumer", epoch, epoch, epoch + 1, ended_by="superseded") for epoch in range(5000)]
    drawn = figure(facts_of(tables_of({"rebalances": rows}), run_of(), 0), "strip")
    assert drawn["rows"] == [
        {"name": "g", "dots": [{"duration_ms": 1000, "ended_by": "superseded", "is_running": True, "count": 5000}]}
    ]


def test_rebalances_of_unknown_length_are_counted(incidents: Facts):
    assert figure(incidents, "strip")["unknown"] == 1


# --- streams ----------------------------------------------------------------------------------------------------------


def test_who_ran_which_task_when(incidents: Facts):
    drawn = figure(incidents, "tasks-1")
    assert drawn["processes"] == ["process-one", "process-two"]
    assert [row["name"] for row in drawn["rows"]] == ["0_0", "0_1", "0_2", "0_3", "1_0", "1_1", "1_2", "1_3"]
    cells = [(cell["role"], cell["process"], cell["from_ms"], cell["to_ms"]) for cell in drawn["rows"][6]["cells"]]
    assert cells == [
        ("active", "process-one", at(12.2), at(71)),
        ("warmup", "process-two", at(41.8), at(71.5)),
        ("active", "process-two", at(71.5), story.END_MS),
    ]


def test_tasks_are_in_the_order_of_their_numbers():
    detail = json.dumps({"role": "active", "process": "p"})
    gained = {"member": "m", "new": '["0_10", "0_9", "1_0"]', "detail": detail}
    tables = tables_of({"group_timeline": story.events("g", "streams", [(1, "partition_gained", gained)])})
    assert [row["name"] for row in facts_of(tables, run_of(), 0)["figures"][0]["rows"]] == ["0_9", "0_10", "1_0"]


def test_a_member_that_leaves_gives_up_its_tasks():
    told = [
        (1, "partition_gained", {"member": "m", "new": '["0_0"]', "detail": '{"role": "active", "process": "p"}'}),
        (5, "member_fenced", {"member": "m"}),
    ]
    tables = tables_of({"group_timeline": story.events("g", "streams", told)})
    [row] = facts_of(tables, run_of(), 0)["figures"][0]["rows"]
    assert [(cell["from_ms"], cell["to_ms"]) for cell in row["cells"]] == [(at(1), at(5))]


def test_every_group_of_many_has_its_strips():
    rows = [{"group": f"g{number:02}", "type": "consumer", "group_epoch": epoch, "started": at(epoch), "duration_ms": 5}
            for number in range(20) for epoch in range(number + 1)]  # fmt: skip
    lag = [{"group": "g03", "topic": "t", "partition": 0, "window_start": at(second), "lag_records": second * 10}
           for second in (0, 10, 19)]  # fmt: skip
    run = run_of() | {"range": {"from_ms": at(0), "to_ms": at(0) + 48_000 - 1}}
    facts = facts_of(tables_of({"rebalances": rows, "consumer_lag": lag}), run, 0)
    found = facts["tables"]["all_groups"]
    assert (found["total"], found["rows"][0]["label"]) == (20, "g19"), "in the order of the table"
    [third] = [row for row in found["rows"] if row["label"] == "g03"]
    assert (third["rebalances_strip"], third["max_lag"]) == ("9999".ljust(48, "0"), 190)
    assert {at: level for at, level in enumerate(third["lag_strip"]) if level != "0"} == {10: "5", 19: "9"}


# --- share groups, lag, quorum ----------------------------------------------------------------------------------------


def test_deliveries_of_share_groups(incidents: Facts):
    [group] = rows_of(incidents, "share_groups")
    assert group["delivered"] == sum(row["delivered"] for row in story.share_rows()["share_delivery"])
    assert group["redelivered_share"] == pytest.approx(group["redelivered"] / group["delivered"], abs=1e-4)
    assert group["rejected"] is None, "known from metrics alone"
    bars = figure(incidents, "deliveries")["rows"][0]["bars"]
    assert {bar["name"]: bar["value"] for bar in bars}["first"] == group["count_1"]


def test_a_rate_is_of_its_whole_minute(incidents: Facts):
    [line] = figure(incidents, "redelivery")["lines"]
    assert line["step"]
    first, *_, last = line["points"]
    assert first[0] == story.START_MS // 60_000 * 60_000
    assert last[0] == story.END_MS


def test_nothing_is_known_between_minutes_of_deliveries():
    base = {"group": "g", "topic_id": "t", "partition": 0, "delivered": 10, "redelivered": 5}
    tables = tables_of({"share_delivery": [base | {"window_start": at(0)}, base | {"window_start": at(180)}]})
    [line] = figure(facts_of(tables, run_of(), 0), "redelivery")["lines"]
    assert [value for _, value in line["points"]] == [50, 50, None, 50, 50]


def test_poison_records_are_listed_once_each(incidents: Facts):
    found = {(row["topic"], row["partition"], row["offset"]) for row in rows_of(incidents, "poison")}
    assert found == {("payments", part, offset) for part, offsets in story.POISON.items() for offset in offsets}
    assert incidents["tables"]["poison"]["total"] == 12


def test_metrics_of_a_whole_group_join_its_row():
    base = {"group": "g", "window_start": at(0)}
    rows = [base | {"topic_id": "t", "partition": 0, "delivered": 10, "lag": 4},
            base | {"topic_id": "", "partition": -1, "rejected": 2, "lock_expiries": 3}]  # fmt: skip
    [group] = rows_of(facts_of(tables_of({"share_delivery": rows}), run_of(), 0), "share_groups")
    assert (group["delivered"], group["rejected"], group["lock_expiries"], group["lag"]) == (10, 2, 3, 4)


def test_lag_is_that_at_the_end_of_the_window(incidents: Facts):
    [billing] = [row for row in rows_of(incidents, "lag") if row["group"] == "billing"]
    assert (billing["max_lag_records"], billing["max_at"]) == (6 * 143, at(110))
    assert (billing["lag_records"], billing["partitions"], billing["stuck"]) == (18, 6, 0)
    lines = {line["name"]: line["points"] for line in figure(incidents, "lag-records")["lines"]}
    assert (at(110), 858) in lines["billing"]


def test_lag_read_in_slices_is_the_same(incidents: Facts, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lag, "SLICE_ROWS", 1)
    found = facts_of(*story.incidents(), GENERATED_MS)
    assert rows_of(found, "lag") == rows_of(incidents, "lag")
    assert figure(found, "lag-records") == figure(incidents, "lag-records")


def test_lag_goes_on_over_days():
    base = {"group": "g", "topic": "t", "topic_id": "t"}
    numbers = {0: (5, 1.0), 100_000: (9, None), 200_000: (2, 3.0)}  # two days and more
    rows = [base | {"partition": part, "window_start": at(second), "lag_records": records, "lag_seconds": seconds}
            for second, (records, seconds) in numbers.items() for part in (0, 1)]  # fmt: skip
    facts = facts_of(tables_of({"consumer_lag": rows}), run_of(range={}), 0)
    [row] = rows_of(facts, "lag")
    assert (row["lag_records"], row["lag_seconds"], row["max_lag_records"], row["max_lag_seconds"]) == (4, 3.0, 18, 3.0)
    assert row["max_at"] == at(100_010)
    [line] = figure(facts, "lag-records")["lines"]
    assert [value for _, value in line["points"]] == [10, 18, 4]


def test_time_in_lock_is_drawn_where_brokers_counted_it(incidents: Facts):
    assert [each["id"] for each in incidents["figures"] if each["id"] == "lock-time"] == []
    rows = story.share_rows()["share_delivery"]
    first, second = sorted({row["window_start"] for row in rows})[:2]
    whole = {"group": "risk-checks", "topic_id": "", "partition": -1, "poison": []}
    rows += [whole | {"window_start": start, "time_in_lock_ms": ms} for start, ms in ((first, 90_000), (second, 0))]
    facts = facts_of(tables_of({"share_delivery": rows}), run_of(), 0)
    delivered = sum(row["delivered"] for row in rows if row["window_start"] == first and row["partition"] >= 0)
    [line] = figure(facts, "lock-time")["lines"]
    assert line["points"][0] == [first, round(90_000 / delivered, 2)]
    assert [value for ms, value in line["points"] if ms >= second] == [0.0, 0.0], "later windows are not known"
    [group] = rows_of(facts, "share_groups")
    assert group["mean_lock_ms"] == round(90_000 / sum(row.get("delivered", 0) for row in rows), 4)


def test_share_groups_have_no_consumer_lag(incidents: Facts):
    assert "risk-checks" not in {row["group"] for row in rows_of(incidents, "lag")}


def test_elections_count_once_though_every_replica_tells_them(incidents: Facts):
    assert rows_of(incidents, "elections") == [
        {"cluster": story.CLUSTER, "window_start": at(100), "leader": 1, "leader_epoch": 5, "elections": 1,
         "leaderless_ms": 15_600, "leaderless_is_bound": True}
    ]  # fmt: skip
    assert [(row["replica"], row["role"]) for row in rows_of(incidents, "replicas")] == [(1, "leader"), (2, "observer")]
    assert area(incidents, "quorum")["numbers"]["elections"] == 1


def test_elections_known_from_the_log_alone():
    rows = [{"replica": 2, "window_start": at(10), "role": "leader", "leader": 2, "leader_epoch": 7, "elections": 1}]
    found = facts_of(tables_of({"quorum_lag": rows}), run_of(), 0)
    assert found["figures"] == []
    assert area(found, "quorum")["sentence"] == "Node 2 leads (epoch 7), 1 election, no replica behind"


# --- size and form of the input ---------------------------------------------------------------------------------------


def test_a_crowd_is_cut_to_what_can_be_shown():
    facts = facts_of(*story.crowd(), GENERATED_MS)
    assert facts["tables"]["rebalances"]["total"] == 2860
    assert all(len(table["rows"]) <= KEPT_ROWS for table in facts["tables"].values())
    lines = [line for each in facts["figures"] if each["kind"] == "lines" for line in each["lines"]]
    assert max(len(line["points"]) for line in lines) <= POINTS_MAX
    assert len([each for each in facts["figures"] if each["id"].startswith("timeline")]) == 12
    assert figure(facts, "lag-records")["left_out"] == 2


def test_the_order_of_rows_does_not_matter(incidents: Facts):
    tables, run = story.incidents()
    shuffled = {}
    for name, table in tables.items():
        rows = table.to_pylist()
        random.Random(1).shuffle(rows)
        shuffled[name] = pa.Table.from_pylist(rows, schema=table.schema)
    assert facts_of(shuffled, run, GENERATED_MS) == incidents


def test_files_say_the_same_as_tables(incidents: Facts, tmp_path: Path):
    tables, run = story.incidents()
    files = {}
    for name, table in tables.items():
        pq.write_to_dataset(table, tmp_path / name, partition_cols=["run_date"])
        files[name] = dataset.dataset(tmp_path / name, format="parquet", partitioning="hive")
    assert facts_of(files, run, GENERATED_MS) == incidents


def test_groups_of_several_clusters_are_told_apart():
    rows = [rebalance("g", "consumer", 1, 1, 2, cluster=cluster) for cluster in ("north-east-1", "south-west-1")]
    facts = facts_of(tables_of({"rebalances": rows}), run_of(clusters=[]), 0)
    assert facts["clusters"] == ["north-east-1", "south-west-1"]
    assert [row["name"] for row in figure(facts, "strip")["rows"]] == ["g (north-ea)", "g (south-we)"]


def test_without_a_range_it_is_that_of_the_data():
    facts = facts_of(story.incidents()[0], run_of(range={"from_ms": None, "to_ms": None}), 0)
    assert facts["range"]["from_ms"] == story.START_MS // 60_000 * 60_000, "the first minute of deliveries"
    assert facts["range"]["to_ms"] == at(240)


# --- incidents on plots -----------------------------------------------------------------------------------------------


def test_problems_are_marked_on_plots_over_time(incidents: Facts):
    marked = {each["id"]: each["incidents"] for each in incidents["figures"] if each["kind"] == "lines"}
    known = {each["id"] for each in incidents["findings"]}
    assert {"redelivery", "lag-records"} <= set(marked)
    for some in marked.values():
        assert all(each["finding"] in known for each in some)
        for severity in ("critical", "warning"):
            alike = [each for each in some if each["severity"] == severity]
            assert all(before["to_ms"] < after["from_ms"] for before, after in pairwise(alike)), "they do not overlap"
    (storm,) = [each for each in marked["redelivery"] if any("redeliver" in text for text in each["sentences"])]
    assert storm["from_ms"] >= START_MS


def incident(since: int, until: int | None, severity: str = "warning", **more: Any) -> Facts:
    subject = {"kind": more.get("kind", "group"), "name": more.get("group", "billing")}
    return {"id": f"{since}", "area": more.get("area", "lag"), "severity": severity, "sentence": f"at {since}",
            "since_ms": since, "until_ms": until, "subject": subject}  # fmt: skip


def test_problems_that_overlap_are_one_incident_for_each_severity():
    found = [
        incident(10, 30),
        incident(20, 50),
        incident(20, 25, "critical"),
        incident(60, None),
        incident(1, 2, "notice"),
    ]
    assert marks_of({"area": "lag", "groups": ["billing"]}, found, 100) == [
        {"from_ms": 10, "to_ms": 50, "severity": "warning", "finding": "10", "sentences": ["at 10", "at 20"]},
        {"from_ms": 60, "to_ms": 100, "severity": "warning", "finding": "60", "sentences": ["at 60"]},
        {"from_ms": 20, "to_ms": 25, "severity": "critical", "finding": "20", "sentences": ["at 20"]},
    ]


def test_a_plot_has_the_problems_of_its_groups_and_of_the_cluster():
    found = [incident(1, 2, group="other"), incident(4, 5, area="share"), incident(7, 8, area="quorum", kind="node"),
             incident(9, 10, area="cluster", kind="node")]  # fmt: skip
    assert [each["from_ms"] for each in marks_of({"area": "lag", "groups": ["billing"]}, found, 9)] == [4, 9]
    assert [each["from_ms"] for each in marks_of({"area": "quorum", "groups": []}, found, 9)] == [7, 9]
