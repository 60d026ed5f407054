"""The command: see `tools.soak`."""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.interop.quorum.cluster_load import PAUSE_S
from tools.progress import say
from tools.soak.growth import judge
from tools.soak.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description="Load of all kinds, without faults.")
    parser.add_argument("--minutes", type=float, default=120.0, help="for how long nodes are watched (120; 3 or more)")
    parser.add_argument("--nodes", type=int, default=3, help="of ottla; three or more (3)")
    parser.add_argument(
        "--pause",
        type=float,
        default=PAUSE_S,
        metavar="SECONDS",
        help="of each producer, after every record of a partition (%(default)g)",
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="keep the data of the nodes, and what they say")
    options = parser.parse_args()
    if options.nodes < 3 or options.minutes < 3:
        parser.error("needs three nodes and three minutes, or more")
    say(f"{options.minutes:g} minutes of load on {options.nodes} nodes")
    directory = options.data or Path(tempfile.mkdtemp(prefix="ottla-soak-"))
    began_s = time.monotonic()
    report = run(options.nodes, seconds=options.minutes * 60, directory=directory, pause_s=options.pause, say=say)
    verdicts = judge(report.samples)
    for verdict in verdicts:
        say(str(verdict))
    for violation in report.violations:
        say(f"VIOLATION {violation}")
    is_well = not report.violations and all(verdict.is_flat for verdict in verdicts)
    say(f"{report.records} records, {len(report.violations)} violations, in {time.monotonic() - began_s:.0f} s")
    if not is_well:
        say(f"see {directory}")
    elif options.data is None:
        shutil.rmtree(directory)
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
