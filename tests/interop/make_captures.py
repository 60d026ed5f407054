"""Make the captures in tests/golden/captures anew: `python -m tests.interop.make_captures`.

The programs of either release of the Java clients, run against a fresh Apache Kafka; one capture by tcpdump, the other
by `ottla proxy --save`. Neither holds a secret: everything in them was made up by the programs.
"""

import gzip
import sys
import tempfile
from pathlib import Path

from tests.interop.apache import ApacheKafka
from tests.interop.programs import PROGRAMS, can_run, run_program
from tests.interop.proxied import Proxy
from tests.interop.sniffed import Tcpdump

GOLDEN = Path(__file__).parents[1] / "golden" / "captures"
SUFFIX = "a1"  # short and the same in every run, so that only what must differ does


def run_all(release: str, bootstrap_servers: str) -> None:
    for name in PROGRAMS:
        if can_run(name, release):
            sys.stderr.write(f"  {release} {name}\n")
            run_program(name, release, bootstrap_servers, SUFFIX)


def by_tcpdump(kafka: ApacheKafka, directory: Path) -> Path:
    with Tcpdump(directory / "java-4.3.1-tcpdump.pcap", kafka.port) as dump:
        run_all("4.3.1", kafka.bootstrap_servers)
    return dump.path


def by_proxy(kafka: ApacheKafka, directory: Path) -> Path:
    path = directory / "java-4.4.0-proxy.pcap"
    with Proxy(kafka.bootstrap_servers, directory, "--save", str(path)) as proxy:
        run_all("4.4.0", proxy.bootstrap_servers)
        proxy.stop()
    return path


def main() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for make in (by_tcpdump, by_proxy):
        with (
            tempfile.TemporaryDirectory(dir="/var/tmp", prefix="kafka-") as name,
            ApacheKafka(Path(name) / "kafka") as kafka,
        ):
            path = make(kafka, Path(name))
            packed = gzip.compress(path.read_bytes(), 9, mtime=0)
        (GOLDEN / f"{path.name}.gz").write_bytes(packed)
        sys.stderr.write(f"{path.name}.gz: {len(packed):,} bytes\n")


if __name__ == "__main__":
    main()
