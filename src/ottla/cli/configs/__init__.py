"""`ottla configs`: settings, log levels and quotas, on any cluster.

`subject` parses TYPE and NAME, `show` formats settings; `get` has the commands that show settings, and `change` those
that change them. Quotas of users, clients and addresses are settings here, too, though another API serves them.
"""

from __future__ import annotations

import click

from ottla.cli.cluster import ClusterGroup, help_alone
from ottla.cli.configs.change import set_configs, unset
from ottla.cli.configs.get import get, list_configs


@click.group(cls=ClusterGroup, invoke_without_command=True)
@click.pass_context
def configs(context: click.Context) -> None:
    """Show and change settings on any cluster.

    TYPE is topic, broker, group, client-metrics or broker-logger; or user, client or ip for quotas. A broker's NAME is
    its node id, or 'default' for the settings of all brokers; for quotas, 'default' applies to every user, client or
    address without its own quotas.
    """
    help_alone(context)


for command in (list_configs, get, set_configs, unset):
    configs.add_command(command)
