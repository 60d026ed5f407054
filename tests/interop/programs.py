"""Our own Java programs in java/src: unmodified Java clients doing one thing each, with either release of the clients.

Each takes the bootstrap servers, checks what it sees, and ends by itself with exit code 0. `pairs()` lists them.
"""

from pathlib import Path

from tests.interop import process
from tests.interop.compiling import class_files
from tests.interop.jars import APACHE_KAFKA, CLIENTS_4_4, classpath

SOURCES = Path(__file__).parent / "java" / "src"
JARS = {"4.3.1": APACHE_KAFKA, "4.4.0": CLIENTS_4_4}
"""Release of the clients -> where its jars come from. Kafka Streams is there in the first one only."""

PROGRAMS = (
    "ProduceFetch",
    "ClassicGroup",
    "ConsumerGroup",
    "ShareGroup",
    "Transactions",
    "StreamsGroup",
    "AdminCalls",  # these two are last: they look at what the others left
    "InternalTopics",
)
TIMEOUT_S = 120


def pairs() -> list[tuple[str, str]]:
    """Every program with every release of the clients that it can run with."""
    return [(name, release) for release in JARS for name in PROGRAMS if can_run(name, release)]


def can_run(name: str, release: str) -> bool:
    return name != "StreamsGroup" or JARS[release] == APACHE_KAFKA


def run_program(name: str, release: str, bootstrap_servers: str, suffix: str = "") -> str:
    """Run a program against a cluster; `suffix` ends the names of its topics and groups, by default a random one."""
    path = classpath(JARS[release], compiled(release))
    arguments = [bootstrap_servers, suffix] if suffix else [bootstrap_servers]
    quiet = {"org.slf4j.simpleLogger.defaultLogLevel": "warn"}
    command = process.java(path, f"interop.{name}", *arguments, options=process.QUICK_START, properties=quiet)
    return process.run(command, timeout_s=TIMEOUT_S)


def compiled(release: str) -> Path:
    """The folder of class files."""
    sources = [path for path in sorted(SOURCES.rglob("*.java")) if can_run(path.stem, release)]
    return class_files(f"program-classes-{release}", sources, JARS[release])
