"""Runs every bench_*.py of this folder, one after the other, with the same options.

python -m benchmarks.explain [--rounds N] [--only TEXT]
"""

import importlib
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    for path in sorted(Path(__file__).parent.glob("bench_*.py")):
        print(f"== {path.stem}", flush=True)
        status: int = importlib.import_module(f"benchmarks.explain.{path.stem}").main(arguments)
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
