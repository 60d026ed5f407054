"""ChunkDecoder a packet capture, beside what reading its packets alone costs.

    python -m benchmarks.explain.bench_capture [--rounds 5] [--megabytes 20]

The capture is made up (`traffic`): eight connections that produce, fetch, beat and ask for metadata, in segments of
1,448 bytes. Subjects: dpkt's own reader with every packet taken apart, which any Python program pays; our reader and
reassembly; the exchanges with their facts; the same with everything printed, as lines and as JSON.
"""

import contextlib
import io
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import dpkt

from benchmarks import runner
from benchmarks.explain.traffic import write_capture
from benchmarks.runner import Case, Size, Subject
from ottla.cli import run as ottla
from ottla.explain.capture import Capture, Seen
from ottla.explain.capture_file import read_packets
from ottla.explain.exchanges import Exchange
from ottla.explain.facts import TopicNames, exchange_facts

PACKAGES = ("dpkt", "msgspec", "rich")
ROUNDS = {Size.FULL: 5, Size.QUICK: 2, Size.SMOKE: 1}
MEGABYTES = {Size.FULL: 20, Size.QUICK: 5, Size.SMOKE: 0.1}


def dpkt_alone(path: Path) -> int:
    """Read and take apart every packet."""
    with path.open("rb") as file:
        return sum(len(dpkt.ethernet.Ethernet(data).data.data.data) for _, data in dpkt.pcap.Reader(file))


def exchanges(path: Path) -> None:
    """Pair everything, keep nothing."""
    with path.open("rb") as file:
        deque(Capture().read(read_packets(file)), maxlen=0)


def facts(path: Path) -> None:
    """Pair everything and look for groups, topics, errors and records."""
    names = TopicNames()
    with path.open("rb") as file:
        for seen in Capture().read(read_packets(file)):
            if isinstance(seen, Seen) and isinstance(seen.event, Exchange):
                exchange_facts(seen.event, names)


def printed(path: Path, *options: str) -> None:
    """What `ottla decode --pcap` does, into a file that nobody reads."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert ottla(["decode", "--pcap", str(path), *options]) == 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = runner.parser(__doc__)
    parser.add_argument("--megabytes", type=float, help="size of the capture (20)")
    options = runner.read_windows(parser, arguments, rounds=ROUNDS, megabytes=MEGABYTES)
    options.window = 0.0  # one reading per window
    with TemporaryDirectory() as folder:
        path = Path(folder) / "traffic.pcap"
        packets = write_capture(path, round(options.megabytes * 1_000_000))
        subjects = [
            Subject("ottla decode --pcap", printed, [(path,)]),
            Subject("  with --json", printed, [(path, "--json")]),
            Subject("  exchanges and facts", facts, [(path,)]),
            Subject("  exchanges", exchanges, [(path,)]),
            Subject("dpkt, packets alone", dpkt_alone, [(path,)]),
        ]
        facts_of_it: dict[str, int | str] = {"bytes": path.stat().st_size, "packets": packets}
        case = Case(f"capture of {options.megabytes:g} MB, {packets:,} packets", subjects, facts_of_it)
        runner.run("explain-capture", [case], options, PACKAGES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
