"""`ottla cluster`: a cluster of several nodes on this machine, and what can be done to it while it runs."""

from __future__ import annotations

import click

from ottla.cli.cluster import ClusterGroup, help_alone
from ottla.cli.local_cluster.orders import cut, heal, kill, pause, resume, start, status, stop
from ottla.cli.local_cluster.rebalance import rebalance
from ottla.cli.local_cluster.replace import replace
from ottla.cli.local_cluster.up import up


@click.group(cls=ClusterGroup, invoke_without_command=True)
@click.pass_context
def cluster(context: click.Context) -> None:
    """Run a cluster on this machine, and simulate failures; rebalance any cluster, or replace its nodes.

    'ottla cluster up' runs until Ctrl-C; the other commands control it from another terminal. Without --data they use
    the only running cluster with temporary data. 'rebalance' and 'replace' work with any cluster.
    """
    help_alone(context)


for command in (up, status, kill, pause, resume, stop, start, cut, heal, rebalance, replace):
    cluster.add_command(command)
