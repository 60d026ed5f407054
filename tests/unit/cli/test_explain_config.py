"""`ottla explain config`: what is said of settings, without a cluster."""

from __future__ import annotations

import json

import pytest

from ottla.cli import run
from ottla.core.metadata.config_defs import broker_defs, client_metrics_defs, group_defs, topic_defs

Capture = pytest.CaptureFixture[str]


def test_a_setting_of_groups(capsys: Capture):
    assert run(["explain", "config", "share.record.lock.duration.ms"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "share.record.lock.duration.ms  a setting of groups",
        "  How long a delivered record is kept for its consumer.",
        "  type      int",
        "  default   30000",
        "  allowed   ≥ 1000",
        "  bounds    group.share.min.record.lock.duration.ms, group.share.max.record.lock.duration.ms of the broker",
        "  also      broker group.share.record.lock.duration.ms",
        "  changed   while it runs",
    ]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (
            "retention.ms",
            "  also      broker log.retention.ms, broker log.retention.minutes, broker log.retention.hours",
        ),
        ("log.retention.hours", "  also      topic retention.ms"),
        ("num.partitions", "  changed   only at start-up"),
        ("listeners", "  changed   at run time, for one broker"),
        ("log.cleaner.threads", "  changed   at run time, for one broker or for all"),
        ("ssl.key.password", "  type      password, secret: never shown"),
        ("background.threads", "  note      accepted, but has no effect in ottla"),
        ("broker.rack", "  default   none"),
        ("authorizer.class.name", '  default   ""'),
        ("interval.ms", "interval.ms  a setting of client metrics"),
    ],
)
def test_what_is_said(name: str, line: str, capsys: Capture):
    assert run(["explain", "config", name]) == 0
    assert line in capsys.readouterr().out.splitlines()


def test_a_name_of_two_kinds_is_told_twice(capsys: Capture):
    assert run(["explain", "config", "compression.type", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["of"], row["changed"]) for row in rows] == [("topic", "while it runs"), ("broker", "cluster-wide")]


def test_all_settings_are_listed(capsys: Capture):
    assert run(["explain", "config", "--list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert len(rows) == sum(map(len, (broker_defs(), topic_defs(), group_defs(), client_metrics_defs())))
    assert all(row["doc"] for row in rows)
    assert run(["explain", "config"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(rows) + 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["retention.mss"], "ottla: unknown setting 'retention.mss'\n  → did you mean retention.ms?\n"),
        (["zzzzzz"], "ottla: unknown setting 'zzzzzz'\n  → 'ottla explain config --list' lists all\n"),
        (["retention.ms", "--html"], "ottla: settings are not available as html\n  → give --json, or nothing\n"),
    ],
)
def test_what_cannot_be_told(words: list[str], complaint: str, capsys: Capture):
    assert run(["explain", "config", *words]) == 2
    assert capsys.readouterr() == ("", complaint)
