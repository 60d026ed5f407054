"""`ottla cluster up`: makes and runs a cluster until it is stopped."""

from __future__ import annotations

import contextlib
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ottla.cli.console_process import ConsoleProcess, check_console
from ottla.cli.failure import EXIT_REFUSED, Failure
from ottla.cli.verbosity import note

if TYPE_CHECKING:
    from ottla.cli.local_cluster.control import Control
    from ottla.testing.clusters.cluster import Cluster
    from ottla.testing.clusters.layout import ClusterLayout

__all__ = ["up"]

DEFAULT_NODES: Final = 3
DEFAULT_CONSOLE_PORT: Final = 8080
NODES_MAX: Final = 50
_LOOK_SECONDS: Final = 0.5


@click.command()
@click.option("--nodes", type=click.IntRange(1, NODES_MAX), help="Number of brokers. [3]")
@click.option(
    "--controllers",
    type=click.IntRange(1, NODES_MAX),
    help="Number of separate controllers. [each node is both]",
)
@click.option("--data", type=click.Path(file_okay=False, path_type=Path), help="Data directory.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of all nodes; repeatable.")
@click.option("--console", "has_console", is_flag=True, help="Also run the console, on --console-port.")
@click.option("--console-port", type=click.IntRange(0, 65535), help="0 means any free port. [8080]")
def up(
    nodes: int | None,
    controllers: int | None,
    data: Path | None,
    settings: Sequence[str],
    has_console: bool,
    console_port: int | None,
) -> int:
    """Run a cluster on this machine until Ctrl-C.

    It formats the nodes' directories, picks free ports, starts a process for each node, and prints a line for each when
    all of them are ready. An existing cluster in the directory is started unchanged. Without --data, data is deleted
    at the end. Each node has a server.properties that Apache Kafka can start with.
    """
    from ottla.broker.config.node_config import ConfigError, set_option

    if has_console or console_port is not None:
        check_console()
        console_port = DEFAULT_CONSOLE_PORT if console_port is None else console_port
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(_directory(data))
        try:
            layout = _layout(directory, nodes, controllers, dict(map(set_option, settings)))
        except ConfigError as error:
            raise Failure(str(error)) from None
        return _run(layout, is_durable=data is not None, console_port=console_port)


@contextlib.contextmanager
def _directory(data: Path | None) -> Iterator[Path]:
    from ottla.cli.local_cluster.control import TEMPORARY_PREFIX, is_running

    if data is None:
        with tempfile.TemporaryDirectory(prefix=TEMPORARY_PREFIX, ignore_cleanup_errors=True) as path:
            yield Path(path)
        return
    if is_running(data):
        raise Failure(f"the cluster in {data} is already running", "ottla cluster status shows it", code=EXIT_REFUSED)
    data.mkdir(parents=True, exist_ok=True)
    yield data.absolute()


def _layout(directory: Path, nodes: int | None, controllers: int | None, settings: Mapping[str, str]) -> ClusterLayout:
    from ottla.testing.clusters.layout import ClusterLayout, LayoutError

    try:
        if not ClusterLayout.exists(directory):
            return ClusterLayout.make(directory, nodes or DEFAULT_NODES, controllers, settings)
        if settings:
            raise Failure(
                f"{directory} already contains a cluster, with its own settings",
                "change them in node-*/server.properties",
            )
        layout = ClusterLayout.open(directory)
        if nodes is not None or controllers is not None:
            layout.expect(nodes or DEFAULT_NODES, controllers)
    except LayoutError as error:
        raise Failure(str(error)) from None
    return layout


def _run(layout: ClusterLayout, *, is_durable: bool, console_port: int | None) -> int:
    from ottla.cli.local_cluster.control import Control
    from ottla.cli.local_cluster.performer import Performer
    from ottla.testing.clusters.cluster import Cluster, ClusterError
    from ottla.testing.clusters.nodes import ottla_node

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.ExitStack() as stack:
        try:
            options = {"--no-sync": not is_durable, "--console": console_port is not None}
            cluster = Cluster(layout, program=ottla_node(*(name for name, is_set in options.items() if is_set)))
            stack.callback(cluster.close)
            note(f"{len(layout.nodes)} nodes are starting in {layout.directory}")
            cluster.start()
            control = Control(layout.directory, Performer(cluster))
            stack.callback(control.close)
            _say(cluster)
            if console_port is not None:
                stack.callback(ConsoleProcess(cluster.bootstrap_servers, console_port).close)
        except (ClusterError, OSError) as error:
            raise Failure(str(error), code=EXIT_REFUSED) from None
        except KeyboardInterrupt:
            return 0
        with contextlib.suppress(KeyboardInterrupt):
            _watch(cluster, control)
        return _stop(cluster)


def _say(cluster: Cluster) -> None:
    for node in cluster:
        listeners = " ".join(f"{name}://{node.layout.address(name)}" for name in node.layout.ports)
        click.echo(f"node={node.node_id} {listeners} pid={node.pid} data={node.layout.directory}")
    click.echo(f"bootstrap={cluster.bootstrap_servers}")


def _watch(cluster: Cluster, control: Control) -> None:
    """Take orders, and tell of nodes that end by themselves."""
    from ottla.testing.clusters.nodes import NodeState

    told: set[int] = set()
    while True:
        control.serve(_LOOK_SECONDS)
        failed = {each.node_id for each in cluster if each.state is NodeState.FAILED}
        for node_id in sorted(failed - told):
            click.echo(f"node {node_id} has ended by itself; {cluster[node_id].layout.log} says why", err=True)
        told = failed


def _stop(cluster: Cluster) -> int:
    from ottla.testing.clusters.nodes import ClusterError

    note("stopping the nodes; press Ctrl-C again to kill them")
    try:
        cluster.stop()
    except ClusterError as error:
        raise Failure(str(error), code=EXIT_REFUSED) from None
    except KeyboardInterrupt:
        return EXIT_REFUSED
    return 0
