"""The options -q and -v, which every command has."""

from __future__ import annotations

from typing import Final

import click

from ottla.cli.printable import printable

QUIET: Final = "ottla.quiet"
REQUESTS_LOGGER: Final = "ottla.client.requests"


def note(text: str) -> None:
    """Print something that is no result on standard error, unless it is to be quiet."""
    if not is_quiet():
        click.echo(printable(text), err=True)


def is_quiet() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(QUIET))


def add_options(command: click.Command) -> None:
    """Add -q and -v to a command, or to all commands of a group and to a group that is one itself. One that has its
    own keeps it."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            add_options(each)
        if not command.params:
            return
    taken = {name for parameter in command.params for name in parameter.opts}
    command.params += [option for option in (_quiet(), _verbose()) if not taken.intersection(option.opts)]


def _quiet() -> click.Option:
    def set_quiet(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:
        if is_wanted:
            context.meta[QUIET] = True

    return click.Option(
        ["-q", "--quiet"],
        is_flag=True,
        expose_value=False,
        callback=set_quiet,
        help="Print only results and errors, no notes or progress.",
    )


def _verbose() -> click.Option:
    return click.Option(
        ["-v", "--verbose"],
        count=True,
        expose_value=False,
        callback=lambda _context, _parameter, count: _log(count),
        help="Log the requests to the cluster on standard error; -vv logs more.",
    )


def _log(verbosity: int) -> None:
    if not verbosity:
        return
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(name)s %(message)s", "%H:%M:%S"))
    logger = logging.getLogger("ottla")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)
    logging.getLogger(REQUESTS_LOGGER).setLevel(logging.DEBUG)
