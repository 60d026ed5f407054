"""Asks for confirmation before something is changed for good."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

import click

from ottla.cli.failure import EXIT_REFUSED, Failure

T = TypeVar("T")


def yes_option(command: Callable[..., T]) -> Callable[..., T]:
    return click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation; required without a terminal.")(
        command
    )


def dry_run_option(command: Callable[..., T]) -> Callable[..., T]:
    return click.option("--dry-run", is_flag=True, help="Only check and show what would be done; change nothing.")(
        command
    )


def confirm(plan: Iterable[str], yes: bool) -> None:
    """Show what would be done, and ask. Without a terminal, `--yes` is required."""
    if yes:
        return
    for line in plan:
        click.echo(line, err=True)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Failure("nothing was changed: confirmation needs a terminal", "--yes skips the confirmation")
    if not click.confirm("Continue?", err=True):
        raise Failure("nothing was changed", code=EXIT_REFUSED)
