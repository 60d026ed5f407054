"""Runs every bench_*.py of this folder, one after the other, with the same options.

python -m benchmarks.wire [--rounds N] [--window SECONDS] [--only TEXT]
"""

import importlib
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    if any(argument.startswith("--o") and not argument.startswith("--on") for argument in arguments):
        print("--out is for one benchmark: give it to benchmarks.wire.bench_NAME", file=sys.stderr)
        return 2
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        print(f"== {path.stem}", flush=True)
        status: int = importlib.import_module(f"benchmarks.wire.{path.stem}").main(arguments)
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
