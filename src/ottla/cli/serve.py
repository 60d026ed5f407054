"""`ottla serve`: a node, broker and controller in one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from ottla.cli.failure import Failure


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), help="Port for clients on this machine; 0 takes any. [9092]")
@click.option("--data", type=click.Path(file_okay=False), help="Directory that holds the data.")
@click.option("--ephemeral", is_flag=True, help="Keep the data in a directory that is removed at the end.")
@click.option("--config", type=click.Path(dir_okay=False), help="A server.properties file with Kafka's settings.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting; can be given many times.")
@click.option("--node-id", type=click.IntRange(0), help="The node's id. [1]")
@click.option("--fsync", is_flag=True, help="Acknowledge nothing before it is on the disk for good.")
@click.option("--metrics-port", type=click.IntRange(0, 65535), help="Port of the metrics page; 0 takes any.")
@click.option(
    "--inspect-port",
    type=click.IntRange(0, 65535),
    help="Port where programs on this machine can see what share groups have in flight; 0 takes any.",
)
@click.option("-v", "--verbose", count=True, help="Show requests; twice shows more.")
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
    verbose: int,
) -> int:
    """Run a node that Kafka clients can use, until it is told to stop.

    Without --data, and without log.dirs among the settings, data are kept for as long as the node runs.
    """
    from ottla.broker import serving
    from ottla.broker.config import DEFAULT_PORT, ConfigError, environment_settings, file_settings, set_option

    if data and ephemeral:
        raise Failure("--data and --ephemeral exclude each other")
    options: dict[str, str] = {}
    if data:
        options["log.dirs"] = data
    if node_id is not None:
        options["node.id"] = str(node_id)
    if fsync:
        options["ottla.fsync"] = "true"
    if metrics_port is not None:
        options["ottla.metrics.port"] = str(metrics_port)
    if inspect_port is not None:
        options["ottla.inspect.listeners"] = f"http://127.0.0.1:{inspect_port}"
    try:
        places = [
            file_settings(config) if config else {},
            environment_settings(os.environ),
            dict(map(set_option, settings)),
            options,
        ]
        if port is not None and any("listeners" in place for place in places):
            raise Failure("--port and the setting listeners exclude each other")
        return serving.run(
            places,
            port=DEFAULT_PORT if port is None else port,
            is_ephemeral=ephemeral,
            verbosity=verbose,
            out=sys.stdout,
        )
    except ConfigError as error:
        raise Failure(str(error)) from None
    except serving.CannotServe as error:
        raise Failure(str(error)) from None
