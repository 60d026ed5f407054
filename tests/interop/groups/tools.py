"""Apache Kafka's tools for groups."""

from __future__ import annotations

import re

import pytest

from tests.interop.apache import tool
from tests.interop.process import ProgramFailed

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Tools:
    """Runs tools against one broker. What is printed comes back as lines of words, with ids masked."""

    def __init__(self, servers: str) -> None:
        self.at = ("--bootstrap-server", servers)
        self.servers = servers

    def __call__(self, main: str, *words: str) -> list[str]:
        said = tool(main, *self.at, *words)
        lines = [" ".join(UUID.sub("ID", line).split()) for line in said.splitlines()]
        return [line for line in lines if line]

    def groups(self, *words: str) -> list[str]:
        return self(GROUPS, *words)

    def refused(self, main: str, *words: str) -> str:
        with pytest.raises(ProgramFailed) as failure:
            tool(main, *self.at, *words)
        return failure.value.output
