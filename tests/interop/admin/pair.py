"""Apache Kafka and ottla side by side, with the same settings, for what both must answer alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ottla.wire import to_json
from tests.component.broker.raw_client import Closed, RawClient
from tests.docs.differences import rows
from tests.interop.apache import ONE_NODE, ApacheKafka
from tests.interop.serving import OttlaServe


class Pair(NamedTuple):
    apache: ApacheKafka
    ottla: OttlaServe

    @property
    def servers(self) -> tuple[str, str]:
        return self.apache.bootstrap_servers, self.ottla.bootstrap_servers


def running_pair(apache: ApacheKafka, directory: Path, **settings: str) -> Iterator[Pair]:
    """`apache` runs already; a node of ours with its settings is started beside it."""
    with OttlaServe(directory, **{**ONE_NODE, **apache.settings, **settings}) as ottla:
        yield Pair(apache, ottla)
        assert "Traceback" not in ottla.log, ottla.log


class ClientPair:
    """Connections to both."""

    def __init__(self, pair: Pair) -> None:
        self._clients = [RawClient.at(servers) for servers in pair.servers]

    def ask(self, message: Any, version: int) -> tuple[Any, Any]:
        """Both answers as JSON, Apache Kafka's first; a text if one of them gave none."""
        apache, ottla = (_answer(client, message, version) for client in self._clients)
        return apache, ottla

    def close(self) -> None:
        for client in self._clients:
            client.close_all()


def _answer(client: RawClient, message: Any, version: int) -> Any:
    try:
        answer = client.ask(message, version)
    except (Closed, TimeoutError) as error:
        client.close()
        return type(error).__name__
    return json.loads(json.dumps(to_json(answer, version)))


def is_difference(name: str) -> bool:
    """Whether docs/reference/differences.md has a line of this name."""
    return name in {row["id"] for row in rows()}
