"""What importing the codec adds to the start of Python, and what the first message adds to that, beside the rivals.

    python -m benchmarks.wire.bench_import [--rounds 15]

Every window is one new process, so the figures hold the whole of what a user waits for. `python -c pass` takes its turn
among them; what is beyond it is printed beside. The first start of each, which writes its bytecode to a folder made for
this run, does not count.
"""

import sys
from collections.abc import Sequence
from tempfile import TemporaryDirectory

from benchmarks import runner
from benchmarks.runner import Case, Measurement, Settings, Subject

PACKAGES = ("msgspec", "kio", "kafka-python", "aiokafka")

# A steady ConsumerGroupHeartbeatRequest v1: group g, member m, epoch 41, the rest null or unchanged.
HEARTBEAT = "0267 026d 00000029 00 00 ffffffff 00 00 00 00 00"

STARTS = {
    "python -c pass": "pass",
    "ottla.wire": "import ottla.wire",
    "ottla.wire.errors": "import ottla.wire.errors",
    "ottla, first decode": "from ottla import wire; "
    f"wire.decode('ConsumerGroupHeartbeatRequest', 1, bytes.fromhex('{HEARTBEAT}'))",
    "msgspec": "import msgspec",
    "kio, first decode": "from kio.serial import entity_reader; "
    "from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest as R; "
    f"entity_reader(R)(bytes.fromhex('{HEARTBEAT}'), 0)",
    "kafka-python, import": "import kafka.protocol.metadata, kafka.protocol.consumer, kafka.protocol.producer",
    "aiokafka, import": "import aiokafka.protocol.metadata, aiokafka.protocol.fetch, aiokafka.protocol.produce",
}


def table(measured: Sequence[Measurement]) -> list[str]:
    base = measured[0]
    lines = [f"{'':24}{'best':>9}{'median':>9}{'spread':>8}   beyond `pass`: best, median"]
    for one in measured:
        best, median = one.best - base.best, one.median - base.median
        times = f"{runner.duration(one.best):>9}{runner.duration(one.median):>9}{one.spread:>8.0%}"
        lines.append(f"{one.subject:24}{times}{best * 1e3:>17.1f} ms{median * 1e3:>6.1f} ms")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    options = runner.read_windows(runner.parser(__doc__), arguments)
    options.window = 0.0  # one process per window
    if options.only not in "import":
        return 0
    with TemporaryDirectory() as bytecode:
        subjects = [Subject(name, runner.run_python, [(code, bytecode)]) for name, code in STARTS.items()]
        case = Case("import", subjects)
        measured = runner.measure(case, Settings(options.rounds, options.window))
    print("\n".join(table(measured)))
    runner.save("wire-import", [(case, measured)], options, PACKAGES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
