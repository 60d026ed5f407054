"""Errors on the command line: what is wrong in one line on standard error, then what to do.

    ottla: there is no command 'versoin'
      → did you mean version?

A command raises `Failure`; click's own errors (unknown option, missing argument, file not found) have the same form,
and so has a package that is missing because its extra was not installed. A bug of ours shows its traceback. Exit codes:

    0    done
    1    the cluster refused, or a check failed
    2    wrong usage or bad input
    3    the cluster cannot be reached
    4    not allowed, or the login failed
    5    this cluster, or its version, cannot do it
    6    done in part; which part is printed
    130  interrupted (143: by SIGTERM)
"""

from collections.abc import Callable, Iterable

import click

from ottla.cli.printable import printable

EXIT_REFUSED = 1
EXIT_BAD_INPUT = 2
EXIT_UNREACHABLE = 3
EXIT_NOT_ALLOWED = 4
EXIT_UNSUPPORTED = 5
EXIT_IN_PART = 6
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells report it

EXTRAS = {"spark": ("pyspark", "pyarrow", "numpy", "pandas", "numba")}
"""Extra of ottla -> its packages that commands import."""


class Failure(Exception):
    """An error: what and why, what to do about it, and the exit code."""

    def __init__(self, problem: str, advice: str = "", *, code: int = EXIT_BAD_INPUT) -> None:
        super().__init__(f"{problem}\n  → {advice}" if advice else problem)
        self.problem = problem
        self.advice = advice
        self.code = code


def nearest(word: str, valid: Iterable[str]) -> str:
    """Advice with the valid word nearest to `word`; empty if none is near."""
    from difflib import get_close_matches

    by_lower = {candidate.lower(): candidate for candidate in valid}
    close = get_close_matches(word.lower(), by_lower, n=1)
    return f"did you mean {by_lower[close[0]]}?" if close else ""


def unknown_command(context: click.Context, word: str, commands: Iterable[str]) -> Failure:
    """The error for a word that is not a command of a group."""
    advice = nearest(word, commands) or f"'{context.command_path} --help' lists the commands"
    group = "" if context.parent is None else f" of '{context.command_path}'"
    return Failure(f"unknown command '{word}'{group}", advice)


def answer(command: Callable[[], object]) -> int:
    """Run `command` and return the exit code."""
    try:
        outcome = command()
    except Failure as failure:
        return _refuse("ottla", str(failure), failure.code)
    except click.ClickException as complaint:
        return _refuse(_where(complaint), _one_line(complaint.format_message()), EXIT_BAD_INPUT)
    except ModuleNotFoundError as error:
        absent = _not_installed(error)
        if absent is None:
            raise
        return _refuse("ottla", str(absent), absent.code)
    except click.Abort:
        return EXIT_INTERRUPTED
    return outcome if isinstance(outcome, int) else 0


def _not_installed(error: ModuleNotFoundError) -> Failure | None:
    """The error for a missing package of an extra; None for any other module."""
    from importlib.util import find_spec

    wanted = (error.name or "").partition(".")[0]
    for extra, packages in EXTRAS.items():
        if wanted in packages:
            missing = [each for each in packages if find_spec(each) is None]
            are = "is" if len(missing) == 1 else "are"
            return Failure(f"{', '.join(missing)} {are} not installed", f'pip install "ottla[{extra}]"')
    return None


def _refuse(where: str, what: str, code: int) -> int:
    for line in f"{where}: {what}".split("\n"):
        click.echo(printable(line), err=True)
    return code


def _where(complaint: click.ClickException) -> str:
    context = complaint.ctx if isinstance(complaint, click.UsageError) else None
    return context.command_path if context else "ottla"


def _one_line(text: str) -> str:
    return " ".join(text.split())
