"""Break messages by the million and look at what the codec makes of them.

    python -m tools.fuzz_messages --count 1000000 --seed 1

Each broken message must raise WireError with a path and an offset, or be read as the interpreter reads it. The same
seed gives the same messages.
"""

from __future__ import annotations

import argparse
import sys
import time

from ottla.wire.fault import WireError
from tests.property.judge import agrees_with_interpreter, verdict
from tests.property.mutation import mutations

PROGRESS_EVERY = 50_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    refused = read = 0
    slowest = 0.0
    for number, broken in enumerate(mutations(options.seed, options.count)):
        start = time.perf_counter()
        found = verdict(broken)
        slowest = max(slowest, time.perf_counter() - start)
        if isinstance(found, WireError):
            refused += 1
        else:
            read += 1
            assert agrees_with_interpreter(broken, found), broken
        if (number + 1) % PROGRESS_EVERY == 0:
            print(f"{number + 1:,} broken messages, {refused:,} refused, {read:,} still readable", flush=True)
    print(
        f"{options.count:,} done: {refused:,} refused, {read:,} read as the interpreter does, slowest {slowest:.3f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
