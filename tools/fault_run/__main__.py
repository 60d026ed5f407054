"""The command: see `tools.fault_run`."""

import argparse
import random
import sys
import time
from pathlib import Path

from tools.fault_run.plan import plan
from tools.fault_run.run import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fault_run", description="Faults on a cluster of real nodes.")
    parser.add_argument("--faults", type=int, default=100, help="how many (100)")
    parser.add_argument("--seed", type=int, default=None, help="which ones; the same seed gives the same faults")
    parser.add_argument("--truth-within", type=float, default=1.0, metavar="SECONDS", help="when all must know (1)")
    parser.add_argument("--controllers", type=int, metavar="N", help="apart from the three brokers; only they are hit")
    parser.add_argument("--data", type=Path, metavar="DIR", help="keep the data of the nodes, and what they say")
    options = parser.parse_args()
    seed = random.randrange(1 << 20) if options.seed is None else options.seed
    print(f"{options.faults} faults of seed {seed}", flush=True)
    began_s = time.monotonic()
    report = run(
        plan(options.faults, seed),
        truth_max_s=options.truth_within,
        controllers=options.controllers,
        data_dir=options.data,
        say=lambda text: print(text, flush=True),
    )
    for problem in report.problems:
        print(f"PROBLEM {problem}")
    print(f"{report}, in {time.monotonic() - began_s:.0f} s")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
