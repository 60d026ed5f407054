"""Commands against a node of ours that runs in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.cli import run
from tests.component.broker.raw_client import RunningNode, running_node

Capture = pytest.CaptureFixture[str]


class Commands:
    """Runs commands on a cluster and gives what they print."""

    def __init__(self, bootstrap: str, capture: Capture) -> None:
        self.bootstrap = bootstrap
        self.capture = capture

    def code(self, *words: str) -> int:
        return run([*words, "--bootstrap", self.bootstrap])

    def __call__(self, *words: str) -> str:
        self.capture.readouterr()
        code = self.code(*words)
        out, err = self.capture.readouterr()
        assert code == 0, err
        return out

    def lines(self, *words: str) -> list[str]:
        return self(*words).splitlines()

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))

    def refused(self, code: int, *words: str) -> str:
        """What is said on standard error of what ends with a code; nothing may be on standard output."""
        self.capture.readouterr()
        assert self.code(*words) == code
        out, err = self.capture.readouterr()
        assert out == ""
        return err


class Live(Commands):
    """On a node of ours."""

    def __init__(self, running: RunningNode, capture: Capture) -> None:
        self.running = running
        advertised = running.node.advertised["PLAINTEXT"]
        super().__init__(f"{advertised.host}:{advertised.port}", capture)


def live_node(directory: Path, **settings: object) -> Iterator[RunningNode]:
    with running_node(directory, **settings) as running:
        yield running
