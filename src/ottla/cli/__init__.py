"""The `ottla` command.

`table` lists every command with its module; `lazy` imports the module only when the command runs, so that
`ottla --help` stays fast; `failure` turns bad input into an error message and an exit code.
"""

import io
import sys
from collections.abc import Sequence

from ottla.cli import colour
from ottla.cli.failure import answer
from ottla.cli.lazy import LazyGroup
from ottla.cli.table import COMMANDS

HELP = "Kafka's little sister: a broker, a codec for the whole protocol, and a pipeline for reports on any cluster."

GROUP = LazyGroup("ottla", COMMANDS, help=HELP)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    return answer(lambda: GROUP.main(arguments, prog_name="ottla", standalone_mode=False, color=colour.wanted()))


def main() -> None:
    """The entry point of the `ottla` command."""
    for stream in (sys.stdout, sys.stderr):
        # Characters that the terminal lacks become question marks.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))
