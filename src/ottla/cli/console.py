"""`ottla console`: the web console of a cluster."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.cluster import Target, client_settings, target_options
from ottla.cli.console_process import check_console
from ottla.cli.failure import EXIT_REFUSED, Failure
from ottla.cli.findings import Rules, evaluator_of, rule_options
from ottla.cli.observer_run import observer_options, options_of
from ottla.cli.verbosity import note
from ottla.wire.access import SCRAM_MECHANISMS

if TYPE_CHECKING:
    from ottla.client.settings import Changes
    from ottla.console.server import ConsoleServer

DEFAULT_PORT = 8080
LOOPBACK = ("127.0.0.1", "::1", "localhost")
WITH_PASSWORDS = ("PLAIN", *SCRAM_MECHANISMS)
"""The SASL mechanisms by which users of the console can log in."""


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0 means any free port."
)
@click.option(
    "--allow-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME[:PORT]",
    help="Accept requests for this host name, such as that of a proxy; repeatable.",
)
@click.option("--login", is_flag=True, help="Let users of the cluster log in, instead of using a token.")
@click.option(
    "--certificate",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TLS certificate (PEM), for https.",
)
@click.option(
    "--key", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Private key of the certificate (PEM)."
)
@click.option(
    "--pipeline",
    "pipelines",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    multiple=True,
    metavar="DIR",
    help="Show runs and reports in this --out directory of 'ottla pipeline'; repeatable.",
)
@click.option("--with-parent", is_flag=True, hidden=True, help="Stop when standard input is closed.")
@observer_options
@rule_options
@target_options
def console(
    target: Target,
    rules: Rules,
    host: str,
    port: int,
    allowed_hosts: tuple[str, ...],
    login: bool,
    certificate: Path | None,
    key: Path | None,
    pipelines: tuple[Path, ...],
    with_parent: bool,
    every: float | None,
    own_intervals: tuple[tuple[str, float], ...],
    metrics: tuple[str, ...],
) -> int:
    """Show a cluster in the browser: findings, topics, groups, nodes and the quorum.

    The console is read-only. It prints a URL that contains a token; open it in a browser. If --host is not a loopback
    address, or with --login, users of the cluster log in with their own name and password (PLAIN or SCRAM, as in
    --command-config), and see what they are authorized to see.
    """
    check_console()
    from ottla.console.access import Access, PasswordAccess, TokenAccess
    from ottla.console.server import Certificate, ConsoleServer
    from ottla.console.watcher import ClusterWatcher

    is_local = host in LOOPBACK
    if not is_local and (certificate is None or key is None):
        raise Failure(f"on {host}, passwords would be sent unencrypted", "give --certificate and --key")
    options = options_of(every, own_intervals, metrics)

    def watcher(settings: Changes, principal: str = "") -> ClusterWatcher:
        evaluator = evaluator_of(rules, intervals_s=options.intervals_s, connection=target.options)
        server = target.bootstrap_server
        return ClusterWatcher(server, settings, evaluator, principal=principal, options=options, pipelines=pipelines)

    access: Access
    if is_local and not login:
        access = by_token = TokenAccess(watcher(client_settings(target)))
        query = f"?token={by_token.token}"
    else:
        properties = _login_properties(target)
        access = PasswordAccess(
            lambda user, password: watcher(_settings_of(properties, user, password), f"User:{user}")
        )
        query = ""
    try:
        server = ConsoleServer(
            access,
            host=host,
            port=port,
            allowed_hosts=allowed_hosts,
            certificate=None if certificate is None or key is None else Certificate(certificate, key),
        )
    except OSError as error:
        advice = "the port is in use; choose another with --port"
        raise Failure(f"cannot listen on {host}:{port}: {error.strerror}", advice, code=EXIT_REFUSED) from None

    def ready() -> None:
        click.echo(f"console={server.address}{query}")
        sys.stdout.flush()
        if with_parent:
            threading.Thread(target=_stop_at_end, args=(server,), daemon=True).start()
        else:
            note("Open the URL in a browser; press Ctrl-C to stop the console.")

    asyncio.run(server.run(ready))
    return 0


def _login_properties(target: Target) -> dict[str, str]:
    """The properties of the console's client without its login, for which users give theirs."""
    from ottla.wire.properties import read_properties

    path = target.command_config
    properties = {} if path is None else dict(read_properties(path.read_text(errors="replace")))
    if not properties.get("security.protocol", "").upper().startswith("SASL_"):
        raise Failure(
            "to log users in, the console must know how they authenticate to the cluster",
            "give a --command-config with security.protocol=SASL_SSL (or SASL_PLAINTEXT) and sasl.mechanism",
        )
    mechanism = properties.get("sasl.mechanism", "")
    if mechanism not in WITH_PASSWORDS:
        # The file's own identity, such as that of an OAuth client, would be given to whoever asks.
        raise Failure(
            f"users log in with a name and a password, which sasl.mechanism={mechanism} does not take",
            f"set sasl.mechanism to {', '.join(WITH_PASSWORDS)}",
        )
    properties.pop("sasl.jaas.config", None)
    return properties


def _settings_of(properties: Mapping[str, str], user: str, password: str) -> Changes:
    from ottla.client.properties import settings_of

    return settings_of({**properties, "sasl.username": user, "sasl.password": password})


def _stop_at_end(server: ConsoleServer) -> None:
    """Stop when whoever started the console has closed its input, or has ended."""
    while sys.stdin.read(1):
        pass
    server.stop()
