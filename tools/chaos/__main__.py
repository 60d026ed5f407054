"""The command: see `tools.chaos`."""

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.interop.node.brokers import APACHE, OTTLA
from tests.interop.quorum.cluster_load import PAUSE_S
from tools.chaos.run import run
from tools.progress import say


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.chaos", description="Faults under load of all kinds.")
    parser.add_argument("--nodes", default="ottla,ottla,ottla", help="ottla or apache for each node, three or more")
    parser.add_argument("--minutes", type=float, default=5.0, help="for how long faults are begun (5)")
    parser.add_argument("--seed", type=int, default=None, help="which faults; the same seed gives the same ones")
    parser.add_argument(
        "--pause",
        type=float,
        default=PAUSE_S,
        metavar="SECONDS",
        help="of each producer, after every record of a partition (%(default)g)",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="keep the data of the nodes, and what they say")
    options = parser.parse_args()
    kinds = options.nodes.split(",")
    if len(kinds) < 3 or not set(kinds) <= {OTTLA, APACHE}:
        parser.error(f"--nodes has three or more of {OTTLA} and {APACHE}, with commas between them")
    seed = random.randrange(1 << 20) if options.seed is None else options.seed
    say(f"{options.minutes:g} minutes of faults of seed {seed} on {', '.join(kinds)}")
    directory = options.data or Path(tempfile.mkdtemp(prefix="ottla-chaos-"))
    began_s = time.monotonic()
    report = run(kinds, seconds=options.minutes * 60, seed=seed, directory=directory, pause_s=options.pause, say=say)
    problems = report.violations + [f"never led: {each}" for each in report.never_led]
    for problem in problems:
        say(f"VIOLATION {problem}")
    say(f"{report}, in {time.monotonic() - began_s:.0f} s")
    if problems:
        say(f"see {directory}")
    elif options.data is None:
        shutil.rmtree(directory)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
