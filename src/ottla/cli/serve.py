"""`ottla serve`: runs a node, which is broker and controller in one."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

import click

from ottla.cli.console_process import ConsoleProcess, check_console
from ottla.cli.failure import EXIT_REFUSED, Failure, nearest


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port for clients on this machine; 0 means any free port. [9092]"
)
@click.option("--data", type=click.Path(file_okay=False), help="Data directory.")
@click.option("--ephemeral", is_flag=True, help="Keep data in a temporary directory.")
@click.option("--config", type=click.Path(dir_okay=False), help="A server.properties file with Kafka's settings.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting; repeatable.")
@click.option("--node-id", type=click.IntRange(0), help="The node's id. [1]")
@click.option("--fsync", is_flag=True, help="Sync every write to the disk before it is acknowledged.")
@click.option("--metrics-port", type=click.IntRange(0, 65535), help="Port of the metrics page; 0 means any.")
@click.option(
    "--inspect-port",
    type=click.IntRange(0, 65535),
    help="Port where local programs can see what the node holds in memory, such as records in flight; 0 means any.",
)
@click.option(
    "--console-port",
    type=click.IntRange(0, 65535),
    help="Port of the console on this machine; it also shows what is in flight, and live traffic. 0 means any.",
)
@click.option("-v", "--verbose", count=True, help="Log requests; -vv logs more.")
def serve(
    port: int | None,
    data: str | None,
    ephemeral: bool,
    config: str | None,
    settings: Sequence[str],
    node_id: int | None,
    fsync: bool,
    metrics_port: int | None,
    inspect_port: int | None,
    console_port: int | None,
    verbose: int,
) -> int:
    """Run a Kafka-compatible node until it is stopped.

    Without --data and the setting log.dirs, data is deleted when the node stops.
    """
    from ottla.broker.config.node_config import (
        DEFAULT_PORT,
        ConfigError,
        UnknownSettings,
        environment_settings,
        file_settings,
        set_option,
    )
    from ottla.cli import node_process

    if data and ephemeral:
        raise Failure("--data and --ephemeral exclude each other")
    if console_port is not None:
        check_console()
    wanted = {
        "log.dirs": data or None,
        "node.id": node_id,
        "ottla.fsync": "true" if fsync else None,
        "ottla.metrics.port": metrics_port,
        "ottla.inspect.listeners": None if inspect_port is None else f"http://127.0.0.1:{inspect_port}",
    }
    options = {name: str(value) for name, value in wanted.items() if value is not None}
    try:
        places = [
            {} if console_port is None else node_process.WITH_CONSOLE,
            file_settings(config) if config else {},
            environment_settings(os.environ),
            dict(map(set_option, settings)),
            options,
        ]
        if port is not None and any("listeners" in place for place in places):
            raise Failure("--port and the setting listeners exclude each other")
        return node_process.run(
            places,
            port=DEFAULT_PORT if port is None else port,
            is_ephemeral=ephemeral,
            verbosity=verbose,
            out=sys.stdout,
            beside=None if console_port is None else lambda address: ConsoleProcess(address, console_port),
        )
    except UnknownSettings as error:
        raise _unknown(error.names, config) from None
    except ConfigError as error:
        raise Failure(str(error)) from None
    except node_process.CannotServe as error:
        raise _cannot_serve(str(error)) from None


def _unknown(names: Sequence[str], config: str | None) -> Failure:
    """The unknown settings, where they are given, and the nearest known ones."""
    from ottla.core.metadata.config_defs import broker_defs

    places = [f"{_place(name, config)}unknown setting '{name}'" for name in names]
    meant = [nearest(name, broker_defs()) for name in names]
    return Failure("; ".join(places), " ".join([*filter(None, meant), "'ottla explain config --list' lists all"]))


def _place(name: str, config: str | None) -> str:
    """`server.properties line 12: `, if the file has the setting."""
    if config is None:
        return ""
    from ottla.wire.properties import read_properties

    with open(config, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if name in read_properties(line):
                return f"{os.path.basename(config)} line {number}: "
    return ""


def _cannot_serve(text: str) -> Failure:
    """Why a node does not start; if a port is taken, also by which process."""
    taken = re.search(r"cannot listen on \S*:(\d+): Address already in use", text)
    if taken is None:
        return Failure(text, code=EXIT_REFUSED)
    from ottla.cli.port_owner import holder

    who = holder(int(taken[1]))
    by = f" (by {who})" if who else ""
    return Failure(f"port {taken[1]} is taken{by}", "--port 0 picks a free one", code=EXIT_REFUSED)
