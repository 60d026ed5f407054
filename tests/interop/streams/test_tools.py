"""kafka-streams-groups prints for ottla what it prints for Apache Kafka."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.interop import process
from tests.interop.apache import tool
from tests.interop.node.brokers import Node
from tests.interop.streams.apps import App
from tests.interop.streams.conftest import made
from tests.interop.streams.feeding import create, feed, wait_for, wait_until
from tests.interop.streams.groups import described, is_stable

PREFIX, GROUP = "tools", "tools-app"
COUNTS = {"tea": "2", "milk": "1"}
_FORMS = (
    (re.compile(r"127\.0\.0\.1:\d+"), "BROKER"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "PROCESS"),
    (re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])"), "MEMBER"),
    (re.compile(r"[ \t]+"), " "),
)


class Both(NamedTuple):
    """The same application on either broker."""

    ottla: Node
    apache: Node

    def say(self, *arguments: str) -> tuple[list[str], list[str]]:
        """What the tool prints, without what differs from run to run."""
        return _said(self.ottla, *arguments), _said(self.apache, *arguments)


def _said(broker: Node, *arguments: str) -> list[str]:
    main = "org.apache.kafka.tools.streams.StreamsGroupCommand"
    text = tool(main, "--bootstrap-server", broker.bootstrap_servers, *arguments, check=False)
    for form, name in _FORMS:
        text = form.sub(name, text)
    return sorted(line.strip() for line in text.splitlines() if line.strip())


@pytest.fixture(scope="module")
def both(apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    base = tmp_path_factory.mktemp("tools")
    with made("ottla", base / "ottla") as ottla, made("apache", base / "apache") as apache:
        for broker in (ottla, apache):
            create(broker.bootstrap_servers, f"{PREFIX}-words", f"{PREFIX}-out")
            feed(broker.bootstrap_servers, f"{PREFIX}-words", [("1", "tea milk tea")])
        yield Both(ottla, apache)


@pytest.fixture(scope="module")
def apps(both: Both, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[App]]:
    started = []
    for broker in both:
        app = App(
            "count", PREFIX, broker.bootstrap_servers, tmp_path_factory.mktemp(type(broker).__name__), client_id="tools"
        )
        started.append(app)
    for app, broker in zip(started, both, strict=True):
        app.running()
        wait_for(broker.bootstrap_servers, f"{PREFIX}-out", COUNTS)
        wait_until("it is stable", lambda broker=broker: is_stable(broker.bootstrap_servers, GROUP, 1))
    yield started
    for app in started:
        app.kill()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--list"],
        ["--list", "--state"],
        ["--list", "--state", "Stable"],
        ["--describe", "--group", GROUP],
        ["--describe", "--group", GROUP, "--state"],
        ["--describe", "--group", GROUP, "--members"],
        ["--describe", "--group", GROUP, "--offsets"],
        ["--describe", "--group", "nobody"],
        ["--delete", "--group", GROUP],
    ],
    ids=" ".join,
)
def test_a_live_group(both: Both, apps: list[App], arguments: list[str]):
    ours, theirs = both.say(*arguments)
    assert ours == theirs


@pytest.mark.parametrize("part", ["--state", "--members", "--offsets"])
def test_a_live_group_verbosely(both: Both, apps: list[App], part: str):
    ours, theirs = both.say("--describe", "--group", GROUP, part, "--verbose")
    assert _without_epochs(ours) == _without_epochs(theirs)


def _without_epochs(lines: list[str]) -> list[str]:
    """Which epoch a group has come to by now depends on when its internal topics were there."""
    return [re.sub(r"\b\d+\b", "N", line) for line in lines]


def test_our_own_command(both: Both, apps: list[App]):
    """`ottla streams` shows the same on either broker."""

    def said(broker: Node, *words: str) -> Any:
        command = [sys.executable, "-m", "ottla", "streams", *words, "--json"]
        shown = process.run([*command, "--bootstrap-server", broker.bootstrap_servers])
        return json.loads(shown)

    for broker in both:
        assert [(each["group_id"], each["state"]) for each in said(broker, "list")["rows"]] == [(GROUP, "Stable")]
        (described,) = said(broker, "describe", GROUP)["rows"]
        assert (described["state"], described["blockers"], described["members"][0]["active"]) == ("Stable", [], 4)
        tasks = said(broker, "tasks", GROUP)["rows"]
        assert [(each["task"], each["role"], each["standing"]) for each in tasks] == [
            (task, "active", "running") for task in ("0_0", "0_1", "1_0", "1_1")
        ]
        assert {each["lag"] for each in tasks} <= {0, None}


def test_an_empty_group(both: Both, apps: list[App]):
    """Last: the applications end here."""
    for app, broker in zip(apps, both, strict=True):
        app.close()
        wait_until(
            "it is empty", lambda broker=broker: described(broker.bootstrap_servers, GROUP).group_state == "Empty"
        )
    for arguments in (
        ["--describe", "--group", GROUP],
        ["--describe", "--group", GROUP, "--members"],
        ["--reset-offsets", "--group", GROUP, "--all-input-topics", "--to-earliest", "--dry-run"],
        ["--reset-offsets", "--group", GROUP, "--all-input-topics", "--to-earliest", "--execute"],
        ["--describe", "--group", GROUP, "--offsets"],
        ["--delete-offsets", "--group", GROUP, "--all-input-topics"],
        ["--delete", "--group", GROUP],
        ["--list"],
    ):
        ours, theirs = both.say(*arguments)
        assert ours == theirs, arguments
