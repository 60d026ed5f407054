"""`ottla console`: the web console of a cluster."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.cluster import Target, client_settings, target_options
from ottla.cli.console_process import check_console
from ottla.cli.failure import EXIT_REFUSED, Failure
from ottla.cli.findings import Rules, evaluator_of, rule_options
from ottla.cli.observer_run import observer_options, options_of

if TYPE_CHECKING:
    from ottla.console.server import ConsoleServer

DEFAULT_PORT = 8080
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address of this machine to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0 means any that is free."
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME[:PORT]",
    help="Another name under which browsers reach the console, such as that of a proxy; repeatable.",
)
@click.option(
    "--pipeline",
    "pipelines",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    metavar="DIR",
    help="An --out directory of 'ottla pipeline', whose runs and reports are shown; repeatable.",
)
@click.option("--with-parent", is_flag=True, hidden=True, help="End when standard input is closed.")
@observer_options
@rule_options
@target_options
def console(
    target: Target,
    rules: Rules,
    host: str,
    port: int,
    allowed_hosts: tuple[str, ...],
    pipelines: tuple[Path, ...],
    with_parent: bool,
    every: float | None,
    own_intervals: tuple[tuple[str, float], ...],
    metrics: tuple[str, ...],
) -> int:
    """Show a cluster in the browser: what is wrong, topics, groups of all four kinds, nodes, the quorum.

    The console only reads. It prints an address with a token in it; open that address.
    """
    if host not in LOOPBACK:
        raise Failure(
            f"the console listens on this machine only, not on {host}",
            f"reach it from elsewhere through a tunnel: ssh -L {port}:127.0.0.1:{port} THIS_MACHINE",
        )
    check_console()
    from ottla.console.server import ConsoleServer
    from ottla.console.watcher import ClusterWatcher

    options = options_of(every, own_intervals, metrics)
    evaluator = evaluator_of(rules, intervals_s=options.intervals_s)
    watcher = ClusterWatcher(
        target.bootstrap_server, client_settings(target), evaluator, options=options, pipelines=pipelines
    )

    try:
        server = ConsoleServer(watcher, host=host, port=port, allowed_hosts=allowed_hosts)
    except OSError as error:
        advice = "another program has the port; choose one with --port"
        raise Failure(f"cannot listen on {host}:{port}: {error.strerror}", advice, code=EXIT_REFUSED) from None

    def ready() -> None:
        click.echo(f"console={server.address}")
        sys.stdout.flush()
        if with_parent:
            threading.Thread(target=_stop_at_end, args=(server,), daemon=True).start()
        else:
            click.echo("Open the address in a browser; Ctrl-C ends the console.", err=True)

    asyncio.run(server.run(ready))
    return 0


def _stop_at_end(server: ConsoleServer) -> None:
    """Stop when whoever started the console has closed its input, or has ended."""
    while sys.stdin.read(1):
        pass
    server.stop()
