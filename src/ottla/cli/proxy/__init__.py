"""`ottla proxy`: watch clients and a cluster talk.

`session` is one connection without sockets; `fronts` the ports behind which nodes are found; `relay` the sockets;
`watch` is told what happens, `show` prints exchanges, `pcap` saves the bytes, `summary` and `report` make the sums.
"""

from pathlib import Path

import click

from ottla.cli.failure import Failure


@click.command()
@click.option("--listen", metavar="[HOST:]PORT", required=True, help="Where clients connect; port 0 is any free one.")
@click.option("--to", "target", metavar="HOST:PORT", required=True, help="One broker of the cluster.")
@click.option("--api", "apis", metavar="NAME|KEY", multiple=True, help="Only this API. May be given again.")
@click.option("--client-id", "client_ids", metavar="TEXT", multiple=True, help="Only this client; * and ? match.")
@click.option("--group", "groups", metavar="TEXT", multiple=True, help="Only this group; * and ? match.")
@click.option("--topic", "topics", metavar="TEXT", multiple=True, help="Only this topic; * and ? match.")
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
    """Pass traffic between clients and a Kafka cluster, and show what they say.

    Clients connect to the proxy instead of the broker. Addresses in responses are rewritten, so that they stay behind
    the proxy: each node gets a port of its own, above the first one. Nothing else is changed. Control-C ends it and
    shows exchanges, errors and latencies per API.

    Without HOST the proxy listens on this machine alone. Secrets are never shown; a saved capture holds them, and only
    its owner may read it.

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
