"""`ottla cluster replace`: puts other software in the place of each node of a running cluster, one after the other.

Nodes may run anywhere: commands of the operator stop and start them. Between these, the command looks at the cluster
and goes on only if nothing is in doubt:

1. The cluster is whole: all brokers serve, all replicas are in sync, enough controllers and replicas are left without
   the node.
2. `--stop` ends the node; it is fenced then, and leads nothing.
3. `--check` looks at its directories.
4. `--start` starts the other software on them; the node is back when all its replicas are in sync.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from ottla.cli.cluster import Column, Seconds, Target, numbers, on_cluster, print_table, target_options
from ottla.cli.confirm import confirm, dry_run_option, yes_option
from ottla.cli.failure import EXIT_IN_PART, EXIT_REFUSED, Failure

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.node_replacement import ClusterState

OTTLA: Final = "ottla"
APACHE: Final = "apache"
_NAMES: Final = {OTTLA: "ottla", APACHE: "Apache Kafka"}
_COLUMNS: Final = (*numbers("NODE"), Column("ADDRESS"), Column("SOFTWARE"), Column("PLAN"))
_LOOK_SECONDS: Final = 0.5
_UNTOUCHED: Final = "nothing was done to this node"
_SETTLE_SECONDS: Final = 30.0
"""How long a doubt before a node's turn may last: a voter is behind for a moment whenever something is written."""


class Commands(NamedTuple):
    """What stops, checks and starts a node; `{node}` and `{host}` stand for its id and its host."""

    stop: str
    check: str | None
    start: str
    back: str | None


class _Node(NamedTuple):
    node_id: int
    address: str
    software: str | None
    """None if it is no broker, which could tell."""

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]


@click.command()
@click.argument("nodes", type=int, nargs=-1, metavar="[NODE]...")
@click.option("--to", "software", type=click.Choice([OTTLA, APACHE]), required=True, help="What the nodes become.")
@click.option("--stop", required=True, metavar="COMMAND", help="Stops a node cleanly, and waits until it has ended.")
@click.option("--check", metavar="COMMAND", help="Checks the directories of a stopped node: ottla storage check DIR.")
@click.option("--start", required=True, metavar="COMMAND", help="Starts the other software on the same directories.")
@click.option("--back", metavar="COMMAND", help="Starts what ran before; it is shown if a node does not come back.")
@click.option("--wait", type=Seconds(), default="10m", show_default=True, metavar="TIME", help="For each step.")
@click.option(
    "--accept-unavailable",
    is_flag=True,
    help="Also replace nodes without which some partitions have too few replicas for acks=all.",
)
@dry_run_option
@yes_option
@target_options
def replace(
    target: Target,
    nodes: Sequence[int],
    software: str,
    stop: str,
    check: str | None,
    start: str,
    back: str | None,
    wait: float,
    accept_unavailable: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Replace the software of a running cluster's nodes, one node at a time, and keep their directories.

    A cluster of Apache Kafka 4.x becomes one of ottla, or the other way round, while clients go on. Each command runs
    in a shell; {node} and {host} in it stand for a node. The command stops at the first doubt and says how to continue
    and how to go back. Called again, it skips the nodes that are done. Nodes that are named are replaced anyway.
    """
    commands = Commands(stop, check, start, back)
    rolling = _Replacement(target, commands, software, wait, may_be_unavailable=accept_unavailable)
    planned = on_cluster(target, lambda client: rolling.plan(client, nodes))
    if not planned:
        click.echo(f"all nodes run {_NAMES[software]} already")
        return
    if dry_run:
        on_cluster(target, lambda client: rolling.settle(client, planned[0]))
        return
    confirm([f"{len(planned)} nodes are stopped and started again, one after the other"], yes)
    on_cluster(target, lambda client: rolling.run(client, planned))


class _Replacement:
    def __init__(
        self, target: Target, commands: Commands, software: str, wait_s: float, *, may_be_unavailable: bool
    ) -> None:
        self._target = target
        self._commands = commands
        self._software = software
        self._wait_s = wait_s
        self._may_be_unavailable = may_be_unavailable
        self._done: list[int] = []
        self._left: list[int] = []

    async def plan(self, client: Client, chosen: Sequence[int]) -> list[_Node]:
        """The nodes to replace, in order; prints what is planned."""
        from ottla.client.node_replacement import read_state

        await _check_features(client)
        state = await read_state(client)
        unknown = sorted(set(chosen) - set(state.node_ids))
        if unknown:
            raise Failure(f"the cluster has no node {unknown[0]}", f"its nodes: {', '.join(map(str, state.node_ids))}")
        nodes = [await self._look_at(client, state, node_id) for node_id in state.node_ids]
        planned = [each for each in nodes if (each.node_id in chosen if chosen else each.software != self._software)]
        rows = []
        for each in nodes:
            plan = f"becomes {_NAMES[self._software]}" if each in planned else "stays"
            rows.append((each.node_id, each.address, _NAMES.get(each.software or "", "unknown"), plan))
        print_table(_COLUMNS, rows)
        return planned

    async def _look_at(self, client: Client, state: ClusterState, node_id: int) -> _Node:
        from ottla.client.node_replacement import is_ottla

        broker = state.brokers.get(node_id)
        if broker is not None and not broker.is_fenced:
            software = OTTLA if await is_ottla(client, node_id) else APACHE
            return _Node(node_id, f"{broker.host}:{broker.port}", software)
        voter = next((each for each in state.quorum.voters if each.node_id == node_id), None)
        if voter is not None and voter.endpoints:
            return _Node(node_id, f"{voter.endpoints[0][1]}:{voter.endpoints[0][2]}", None)
        return _Node(node_id, "" if broker is None else f"{broker.host}:{broker.port}", None)

    async def run(self, client: Client, nodes: Sequence[_Node]) -> None:
        for number, node in enumerate(nodes):
            self._left = [each.node_id for each in nodes[number:]]
            await self._replace(client, node)
            self._done.append(node.node_id)
        click.echo(f"done: {len(nodes)} nodes run {_NAMES[self._software]}")

    async def settle(self, client: Client, node: _Node) -> None:
        """Wait until nothing speaks against taking the node away."""
        from ottla.client.node_replacement import doubts

        def judge(state: ClusterState) -> list[str]:
            return doubts(state, node.node_id, may_be_unavailable=self._may_be_unavailable)

        reasons = await self._until(client, judge, _SETTLE_SECONDS)
        if reasons:
            raise self._stopped(node, reasons, _UNTOUCHED)

    async def _replace(self, client: Client, node: _Node) -> None:
        from ottla.client.node_replacement import missing, present, read_state

        await self.settle(client, node)
        before = await read_state(client)
        is_broker = node.node_id in before.brokers
        is_voter = node.node_id in {each.node_id for each in before.quorum.voters}
        clock = asyncio.get_running_loop().time
        begun = clock()
        click.echo(f"node {node.node_id}: stopping")
        await self._order(node, self._commands.stop, "the node may be running or not")
        reasons = await self._until(client, lambda state: present(state, node.node_id), self._wait_s)
        if reasons:
            raise self._stopped(node, reasons, "the node was stopped, and the cluster does not know it yet")
        if self._commands.check is not None:
            click.echo(f"node {node.node_id}: checking")
            await self._order(node, self._commands.check, "the node is stopped")
        click.echo(f"node {node.node_id}: starting as {_NAMES[self._software]}")
        await self._order(node, self._commands.start, "the node is stopped, or has failed to start")
        reasons = await self._until(
            client, lambda state: missing(state, node.node_id, is_broker=is_broker, is_voter=is_voter), self._wait_s
        )
        if reasons:
            raise self._stopped(node, reasons, "the node was started, and has not come back")
        await self._check_software(client, node, is_broker=is_broker)
        click.echo(f"node {node.node_id}: back and in sync after {clock() - begun:.0f} s")

    async def _check_software(self, client: Client, node: _Node, *, is_broker: bool) -> None:
        if is_broker:
            from ottla.client.node_replacement import is_ottla

            found = OTTLA if await is_ottla(client, node.node_id) else APACHE
            if found != self._software:
                reason = f"it runs {_NAMES[found]}, not {_NAMES[self._software]}"
                raise self._stopped(node, [reason], "--start has started the wrong software")

    # --- steps --------------------------------------------------------------------------------------------------------

    async def _until(self, client: Client, judge: Callable[[ClusterState], list[str]], wait_s: float) -> list[str]:
        """Look at the cluster until there is no reason left; gives the last reasons when the time is up."""
        from ottla.client import ClientError
        from ottla.client.node_replacement import read_state

        clock = asyncio.get_running_loop().time
        until = clock() + wait_s
        while True:
            try:
                reasons = judge(await read_state(client))
            except ClientError as error:
                reasons = [f"the cluster does not answer: {error}"]
            if not reasons or clock() > until:
                return reasons
            await asyncio.sleep(_LOOK_SECONDS)

    async def _order(self, node: _Node, command: str, state: str) -> None:
        """Run a command of the operator; what it prints is shown."""
        text = self._filled(command, node)
        process = await asyncio.create_subprocess_shell(text)
        try:
            code = await asyncio.wait_for(process.wait(), self._wait_s)
        except TimeoutError:
            process.terminate()
            raise self._stopped(node, [f"{text} has not ended in {self._wait_s:g} s"], state) from None
        if code:
            raise self._stopped(node, [f"{text} ended with exit code {code}"], state)

    def _filled(self, command: str, node: _Node) -> str:
        return command.replace("{node}", str(node.node_id)).replace("{host}", node.host)

    # --- stopping half-way --------------------------------------------------------------------------------------------

    def _stopped(self, node: _Node, reasons: Sequence[str], state: str) -> Failure:
        """Why it does not go on, and what to do."""
        lines = []
        if state != _UNTOUCHED and self._commands.back is not None:
            lines.append(f"to have node {node.node_id} as it was: {self._filled(self._commands.back, node)}")
        lines.append(f"to continue, when this is mended: {self._again()}")
        if self._done:
            done = " ".join(map(str, self._done))
            other = APACHE if self._software == OTTLA else OTTLA
            lines.append(
                f"to go back: ottla cluster replace {done} --to {other} with the commands for {_NAMES[other]}; "
                f"a cluster of both kinds may also stay as it is"
            )
        code = EXIT_IN_PART if self._done else EXIT_REFUSED
        return Failure(f"node {node.node_id}: {'; '.join(reasons)} ({state})", "\n  → ".join(lines), code=code)

    def _again(self) -> str:
        commands = self._commands
        words = ["ottla", "cluster", "replace", "--to", self._software, *self._target.options.split()]
        for option, command in (("--stop", commands.stop), ("--check", commands.check), ("--start", commands.start)):
            words += [] if command is None else [option, command]
        return shlex.join(words)


async def _check_features(client: Client) -> None:
    """Failure if the cluster has a level that one of both kinds refuses: it is found before a node is stopped."""
    from ottla.client.features import finalized_levels
    from ottla.core.metadata.features import SUPPORTED

    for name, level in (await finalized_levels(client)).items():
        low, high = SUPPORTED.get(name, (0, 0))
        if not low <= level <= high:
            raise Failure(
                f"{name} is at level {level}, and Apache Kafka 4.3 and ottla both serve {low} to {high}",
                f"lower it first: kafka-features.sh --bootstrap-server … downgrade --feature {name}={high}",
                code=EXIT_REFUSED,
            )
