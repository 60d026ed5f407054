"""Runs every bench_*.py of a folder, one after the other, with the same options.

python -m benchmarks wire [--quick | --smoke] [--no-java] [--rounds N] [--only TEXT]
"""

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).parent


def folders() -> list[str]:
    return sorted({path.parent.name for path in HERE.glob("*/bench_*.py")})


def benchmarks_of(folder: str) -> list[str]:
    """The modules of a folder, in the order in which they run."""
    return [f"benchmarks.{folder}.{path.stem}" for path in sorted((HERE / folder).glob("bench_*.py"))]


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in folders():
        print(f"usage: python -m benchmarks FOLDER [options]; the folders are {', '.join(folders())}", file=sys.stderr)
        return 2
    folder, *options = arguments
    for module in benchmarks_of(folder):
        print(f"== {module.rpartition('.')[2]}", flush=True)
        status: int = importlib.import_module(module).main(options)
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
