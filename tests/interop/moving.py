"""Three nodes whose leaders move while a suite runs: by reassignment and election, and by kills.

`OTTLA_INTEROP_BROKERS=moving` lets suites run on them. `moves.txt` in their directory says what has moved, and a run in
which little has moved does not pass.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from pathlib import Path
from typing import Final, Self

from ottla.client import Client, TopicPartition
from ottla.client.errors import ClientError
from ottla.client.features import SAFE_DOWNGRADE, update_features
from ottla.client.metadata import Partition
from ottla.client.reassignments import try_reassign
from ottla.testing.clusters.cluster import Cluster, ClusterError, open_or_make
from ottla.testing.clusters.nodes import OTTLA
from ottla.wire.types import ElectLeadersRequest

NODES: Final = 3
MOVES_MIN: Final = 20
MOVE_EVERY_S: Final = 5.0
KILL_EVERY_S: Final = 45.0
DOWN_S: Final = 1.0
_PREFERRED: Final = 0
DEFAULT_TRANSACTION_VERSION: Final = 2
_OF_ONE_NODE: Final = ("replication.factor", "min.isr", "broker.session", "broker.heartbeat")
"""Settings of suites that are for a node on its own."""


class MovingCluster:
    """Has the face of a node."""

    def __init__(self, directory: Path, *, transaction_version: int | None = None, **settings: object) -> None:
        self.directory = directory
        self.moves: list[str] = []
        self._transaction_version = transaction_version
        texts = {key if "." in key else key.replace("_", "."): str(value) for key, value in settings.items()}
        self._settings = {key: each for key, each in texts.items() if not any(own in key for own in _OF_ONE_NODE)}
        self._settings["auto.create.topics.enable"] = "false"
        self._random = random.Random(7)
        self._cluster: Cluster | None = None
        self._began_s = time.monotonic()
        self._is_over = threading.Event()
        self._mover: threading.Thread | None = None

    @property
    def cluster(self) -> Cluster:
        assert self._cluster is not None, "the cluster was never started"
        return self._cluster

    @property
    def bootstrap_servers(self) -> str:
        return self.cluster.bootstrap_servers

    @property
    def data_dir(self) -> Path:
        raise AssertionError("three nodes have no data directory of their own")

    @property
    def running(self) -> bool:
        return self._cluster is not None

    @property
    def log(self) -> str:
        """What the nodes have printed."""
        return "\n".join(each.log for each in self.cluster)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        layout = open_or_make(self.directory / "nodes", NODES, None, self._settings)
        self._cluster = Cluster(layout, program=OTTLA)
        self._cluster.start()
        if self._transaction_version not in (None, DEFAULT_TRANSACTION_VERSION):
            asyncio.run(self._set_transaction_version(self._transaction_version))
        self._is_over.clear()
        self._mover = threading.Thread(target=self._move, name="mover", daemon=True)
        self._mover.start()

    def kill(self) -> None:
        if self._cluster is None:
            return
        self._is_over.set()
        if self._mover is not None:
            self._mover.join(60)
        self._cluster.close()
        self._cluster = None

    def check(self) -> None:
        """At the end of a suite. A short one cannot have seen as many."""
        wanted = min(MOVES_MIN, int((time.monotonic() - self._began_s) / (2 * MOVE_EVERY_S)))
        assert len(self.moves) >= wanted, f"only {len(self.moves)} leaders have moved: {self.moves}"

    async def _set_transaction_version(self, level: int) -> None:
        async with Client(self.bootstrap_servers) as client:
            await update_features(client, {"transaction.version": level}, upgrade_type=SAFE_DOWNGRADE)

    # --- moving -------------------------------------------------------------------------------------------------------

    def _move(self) -> None:
        kill_at_s = time.monotonic() + KILL_EVERY_S
        while not self._is_over.wait(MOVE_EVERY_S):
            with contextlib.suppress(ClientError, ClusterError):
                if time.monotonic() >= kill_at_s:
                    self._kill_one()
                    kill_at_s = time.monotonic() + KILL_EVERY_S
                else:
                    asyncio.run(self._elect_another())

    async def _elect_another(self) -> None:
        """Let another replica in sync lead a partition, of coordinators or of a topic."""
        async with Client(self.bootstrap_servers, request_timeout_ms=5_000) as client:
            found = await self._partitions(client)
            movable = {at: each for at, each in found.items() if len(each.isr) > 1 and each.leader in each.isr}
            if not movable:
                return
            internal = [at for at in movable if at.topic.startswith("__")]
            at = self._random.choice(internal if internal and self._random.random() < 0.6 else sorted(movable))
            before = movable[at]
            first = self._random.choice([each for each in before.isr if each != before.leader])
            await try_reassign(client, {at: [first, *(each for each in before.replicas if each != first)]})
            kind = ElectLeadersRequest
            await client.send(
                kind(_PREFERRED, (kind.TopicPartitions(at.topic, (at.partition,)),), 5_000), broker="controller"
            )
            self._note("elected", {at: before}, await self._partitions(client))

    def _kill_one(self) -> None:
        """Kill the node that leads a coordinators' partition, or any, and start it again."""
        before = asyncio.run(self._look())
        leaders = [each.leader for at, each in before.items() if at.topic.startswith("__") and each.leader > 0]
        victim = self.cluster[self._random.choice(leaders or [1, 2, 3])]
        victim.kill()
        time.sleep(DOWN_S)
        self._note(f"killed {victim.node_id}", before, asyncio.run(self._look()))
        victim.start()
        self.cluster.wait_in_sync()

    async def _look(self) -> dict[TopicPartition, Partition]:
        async with Client(self.bootstrap_servers, request_timeout_ms=5_000) as client:
            return await self._partitions(client)

    async def _partitions(self, client: Client) -> dict[TopicPartition, Partition]:
        topics = await client.all_topics()
        return {
            TopicPartition(topic.name, number): each
            for topic in topics.values()
            for number, each in topic.partitions.items()
        }

    def _note(self, why: str, before: dict[TopicPartition, Partition], after: dict[TopicPartition, Partition]) -> None:
        with (self.directory / "moves.txt").open("a") as file:
            for at, each in before.items():
                now = after.get(at)
                if now is not None and now.leader != each.leader:
                    self.moves.append(f"{at}: {each.leader} → {now.leader} ({why})")
                    file.write(f"{time.strftime('%H:%M:%S')} {self.moves[-1]}\n")
