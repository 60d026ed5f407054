"""Record the demo anew: docs/tutorial/first-run.txt, and the lines of it that the README quotes.

`python tools/record_first_run.py` runs the demo, about five minutes; with a file as argument it takes what that run has
printed. Only a run in which everything was found is recorded.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORDING = ROOT / "docs" / "tutorial" / "first-run.txt"
README = ROOT / "README.md"
QUOTED = re.compile(r"^(```console\n\$ make demo\n).*?(^```)", re.MULTILINE | re.DOTALL)
WORTH_QUOTING = (
    "1/6 ", "2/6 ", "3/6 ", "partitions reassigned", "4/6 ", "all partitions have", "restarted with", "5/6 ",
    "risk-checks: all", "6/6 ", "expectations met", "report demo/",
)  # fmt: skip


def main(arguments: list[str]) -> None:
    said = Path(arguments[0]).read_text() if arguments else run()
    if not re.search(r"expectations met: (\d+) of \1$", said, re.MULTILINE):
        sys.exit("this run did not find everything; it is not recorded")
    lines = [line.rstrip().replace(f"{ROOT}/", "") for line in said.splitlines()]
    RECORDING.write_text("\n".join(["$ ottla demo", *lines, ""]))
    README.write_text(QUOTED.sub(lambda match: match[1] + quote(lines) + match[2], README.read_text()))


def run() -> str:
    command = [sys.executable, "-m", "ottla", "demo"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT).stdout


def quote(lines: list[str]) -> str:
    return "".join(f"{line}\n" for word in WORTH_QUOTING for line in lines if word in line)


if __name__ == "__main__":
    main(sys.argv[1:])
