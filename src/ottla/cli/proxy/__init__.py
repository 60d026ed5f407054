"""`ottla proxy`: shows the traffic between clients and a cluster.

`session` is one connection without sockets; `fronts` has a listening port for each node; `relay` has the sockets;
`watch` observes the traffic, `show` prints exchanges, `pcap` saves the bytes, `summary` and `report` make the totals.
"""

from pathlib import Path

import click

from ottla.cli.failure import Failure


@click.command()
@click.option("--listen", metavar="[HOST:]PORT", required=True, help="Address for clients; port 0 means any free one.")
@click.option("--to", "target", metavar="HOST:PORT", required=True, help="One broker of the cluster.")
@click.option("--api", "apis", metavar="NAME|KEY", multiple=True, help="Only this API; repeatable.")
@click.option(
    "--client-id", "client_ids", metavar="TEXT", multiple=True, help="Only this client; * and ? are wildcards."
)
@click.option("--group", "groups", metavar="TEXT", multiple=True, help="Only this group; * and ? are wildcards.")
@click.option("--topic", "topics", metavar="TEXT", multiple=True, help="Only this topic; * and ? are wildcards.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per message and line.")
@click.option("-v", "--verbose", is_flag=True, help="Show every field with its bytes.")
@click.option("--width", type=click.IntRange(min=40), help="Columns to use instead of the terminal's width.")
@click.option("--save", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Save a packet capture.")
def proxy(
    listen: str,
    target: str,
    apis: tuple[str, ...],
    client_ids: tuple[str, ...],
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    as_json: bool,
    verbose: bool,
    width: int | None,
    save: Path | None,
) -> None:
    """Forward traffic between clients and a Kafka cluster, and show it.

    Clients connect to the proxy instead of the broker. Addresses in responses are rewritten, so that clients keep using
    the proxy: each node gets its own port, above the first one. Nothing else is changed. Ctrl-C stops it and
    prints exchanges, errors and latencies per API.

    Without HOST the proxy listens on the loopback address only. Secrets are never shown, but a saved capture contains
    them, so only its owner may read it.

    \b
    ottla proxy --listen 19092 --to broker.example:9092
    ottla proxy --listen 19092 --to localhost:9092 --group 'orders-*' -v
    """
    from ottla.cli.proxy.address import parse_listen, parse_target
    from ottla.cli.proxy.command import Options, run
    from ottla.cli.proxy.show import Show
    from ottla.explain.filters import UnknownApi, make_filters

    try:
        filters = make_filters(apis, client_ids, groups, topics)
    except UnknownApi as unknown:
        raise Failure(str(unknown), f"did you mean {unknown.nearest}?") from None
    show = Show(filters, as_json=as_json, verbose=verbose, width=width)
    run(Options(parse_listen(listen), parse_target(target), show, save))
