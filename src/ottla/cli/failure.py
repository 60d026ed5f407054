"""How the command line answers bad input: one line on standard error, exit code 2.

A command raises `Failure`; click's own complaints (unknown option, missing argument, file not found) take the same way,
so that every refusal looks alike. A bug of ours is neither: its traceback is shown.
"""

from collections.abc import Callable, Iterable

import click

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells report it


class Failure(Exception):
    """The user's input cannot be used: what it is, and what to do about it."""

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(f"{problem}; {advice}" if advice else problem)


def nearest(word: str, valid: Iterable[str]) -> str:
    """Advice that names the valid word nearest to `word`, or nothing when none is near."""
    from difflib import get_close_matches

    by_lower = {candidate.lower(): candidate for candidate in valid}
    close = get_close_matches(word.lower(), by_lower, n=1)
    return f"did you mean {by_lower[close[0]]}?" if close else ""


def answer(command: Callable[[], object]) -> int:
    """Run `command` and turn how it ended into an exit code."""
    try:
        outcome = command()
    except Failure as failure:
        return _refuse("ottla", str(failure))
    except click.ClickException as complaint:
        return _refuse(_where(complaint), _one_line(complaint.format_message()))
    except click.Abort:
        return EXIT_INTERRUPTED
    return outcome if isinstance(outcome, int) else 0


def _refuse(where: str, what: str) -> int:
    click.echo(f"{where}: {what}", err=True)
    return EXIT_BAD_INPUT


def _where(complaint: click.ClickException) -> str:
    context = complaint.ctx if isinstance(complaint, click.UsageError) else None
    return context.command_path if context else "ottla"


def _one_line(text: str) -> str:
    return " ".join(text.split())
