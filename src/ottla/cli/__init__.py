"""The `ottla` command.

`table` names every command and where it lives; `lazy` loads a command's module only when it runs, so that
`ottla --help` stays quick however many commands there are; `failure` says how bad input is answered.
"""

import io
import sys
from collections.abc import Sequence

from ottla.cli import colour
from ottla.cli.failure import answer
from ottla.cli.lazy import LazyGroup
from ottla.cli.table import COMMANDS

HELP = "Kafka's little sister: read, explain and write Kafka's protocol."

GROUP = LazyGroup("ottla", COMMANDS, help=HELP)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and give its exit code."""
    return answer(lambda: GROUP.main(arguments, prog_name="ottla", standalone_mode=False, color=colour.wanted()))


def main() -> None:
    """Be the `ottla` command of the shell."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character gets a question mark for it, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))
