"""Fixtures for tests beside the original. Everything in this folder is marked `interop`; `make interop` runs it."""

import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.apache import ApacheKafka
from tests.interop.jars import APACHE_KAFKA, CLIENTS_4_4, Report, SetupError, libraries
from tests.interop.node.brokers import APACHE, MOVING, OTTLA, booting, wanted
from tests.interop.scheduler import BrokerScheduling, group_of
from tests.interop.shared_classes import share_classes

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is here, and see that its groups can be told from the names of tests."""
    found: dict[str, object] = {}
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.interop)
            broker, group = shared_broker(item), group_of(item.nodeid)
            if broker is not None and found.setdefault(group, broker) != broker:
                raise pytest.UsageError(f"{item.nodeid} uses {broker}, others of its group {group} use {found[group]}")


def shared_broker(item: pytest.Item) -> tuple[object, ...] | None:
    """The broker that a test shares with others of its folder."""
    given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    kind = given.get("kind", given.get("broker"))
    return (item.path.parent.name, kind, given.get("txn_version")) if kind in (OTTLA, APACHE, MOVING) else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests that share a broker are a group, which one of the processes side by side runs alone."""
    return BrokerScheduling(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(scope="session")
def report(request: pytest.FixtureRequest) -> Report:
    """Says something to the person who waits, past pytest's capturing."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    terminal = request.config.pluginmanager.getplugin("terminalreporter")

    def say(text: str) -> None:
        if terminal is not None:  # a worker of pytest-xdist has none
            with capture.global_and_fixture_disabled():
                terminal.write(text)

    return say


def fetched(name: str, report: Report) -> Path:
    try:
        return libraries(name, report)
    except SetupError as missing:
        pytest.fail(str(missing), pytrace=False)


@pytest.fixture(scope="session")
def apache_jars(report: Report) -> Path:
    """The jars of Apache Kafka: broker, tools, Kafka Streams, clients."""
    jars = fetched(APACHE_KAFKA, report)
    share_classes(report)
    return jars


@pytest.fixture(scope="session")
def clients_4_4_jars(report: Report) -> Path:
    """The jars of the newer Java clients alone."""
    return fetched(CLIENTS_4_4, report)


@pytest.fixture(scope="session", params=wanted())
def kind(request: pytest.FixtureRequest) -> str:
    """Of the broker under test. Who asks for it runs against `ottla serve` and, to prove what it expects, against
    Apache Kafka."""
    return str(request.param)


@pytest.fixture
def name() -> str:
    """A name that no other test has."""
    return f"t-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="session")
def apache_kafka(apache_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """One node for the whole run. A test that stops it, or needs settings of its own, takes `boot_apache_kafka`."""
    with ApacheKafka(tmp_path_factory.mktemp("apache-kafka")) as kafka:
        yield kafka


@pytest.fixture
def boot_apache_kafka(apache_jars: Path, tmp_path: Path) -> Iterator[Callable[..., ApacheKafka]]:
    """Boots nodes for one test: `boot_apache_kafka(log_segment_bytes=…)`. What still runs at its end is killed."""
    yield from booting(lambda number, **settings: ApacheKafka(tmp_path / f"apache-kafka-{number}", **settings))


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and a certificate of it for 127.0.0.1 with its key, as PEM."""
    folder = tmp_path_factory.mktemp("certificates")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for arguments in (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ottla-test-authority -keyout ca.key -out ca.pem",
        "req -newkey rsa:2048 -nodes -subj /CN=broker -keyout broker.key -out broker.csr",
        "x509 -req -in broker.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out broker.crt",
    ):
        subprocess.run(["openssl", *arguments.split()], cwd=folder, check=True, capture_output=True)
    store = (folder / "broker.key").read_text() + (folder / "broker.crt").read_text() + (folder / "ca.pem").read_text()
    (folder / "broker.pem").write_text(store)
    return folder
