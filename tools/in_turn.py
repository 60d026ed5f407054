"""Make several targets one after the other, whether or not one fails, and say at the end how each went.

    python tools/in_turn.py check suite interop-clients

The exit code is 1 if one of them failed.
"""

import subprocess
import sys
import time
from collections.abc import Sequence


def make_in_turn(targets: Sequence[str], make: Sequence[str] = ("make",)) -> tuple[bool, list[str]]:
    """Whether all went well, and a line for each."""
    lines = []
    is_well = True
    for target in targets:
        print(f"== make {target}", flush=True)
        began_s = time.monotonic()
        code = subprocess.run([*make, target], check=False).returncode
        minutes, seconds = divmod(round(time.monotonic() - began_s), 60)
        lines.append(
            f"{target:<16} {'passed' if code == 0 else f'failed ({code})':<11} {minutes:>3} min {seconds:>2} s"
        )
        is_well &= code == 0
    return is_well, lines


if __name__ == "__main__":
    is_well, lines = make_in_turn(sys.argv[1:])
    print(*lines, sep="\n")
    sys.exit(not is_well)
