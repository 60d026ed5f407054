"""Colour and bold type: on terminals only, never with NO_COLOR or a dumb terminal, always with --color."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, Literal

import click

if TYPE_CHECKING:
    from rich.console import Console

_DUMB: Final = ("dumb", "unknown")


def wanted() -> bool | None:
    """Whether styles are wanted: True or False if the user says so, None to let the stream decide."""
    context = click.get_current_context(silent=True)
    if context is not None and context.color is not None:
        return context.color
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") in _DUMB else None


def console(width: int | None = None) -> Console:
    """The console that prints tables and pages."""
    from rich.console import Console

    asked = wanted()
    system: Literal["auto", "standard"] | None = None if asked is False else ("standard" if asked else "auto")
    return Console(
        highlight=False, markup=False, emoji=False, color_system=system, force_terminal=asked or None, width=width
    )


def option() -> click.Option:
    def choose(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:
        if is_wanted:
            context.color = True

    return click.Option(
        ["--color"], is_flag=True, expose_value=False, is_eager=True, callback=choose, help="Always use colour."
    )
