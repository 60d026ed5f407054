"""A broker for a test, on a free port and with a temporary directory."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.testing.faults import Faults
from ottla.testing.ports import LOOPBACK, PortReservation
from ottla.testing.runners import BrokerError, BrokerRunner, ProcessRunner, ThreadRunner

if TYPE_CHECKING:
    from ottla.testing.security import BrokerSecurity

__all__ = ["Broker", "BrokerError", "broker", "settings_of"]

FOR_TESTS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
}
"""Defaults that make a single node fast: small internal topics, no waiting for members. The test's settings win."""

PLAINTEXT: Final = "PLAINTEXT"
_OURS: Final = ("listeners", "advertised.listeners", "log.dir", "log.dirs", "metadata.log.dir")


@contextlib.contextmanager
def broker(
    *,
    process: bool = False,
    directory: str | Path | None = None,
    durable: bool = False,
    security: str = "plaintext",
    **config: object,
) -> Iterator[Broker]:
    """A running broker: `with broker(num_partitions=3) as b: …`.

    `config` has Kafka's settings, with `_` for the dot, or unpacked from a dict under their own names. The broker runs
    in a thread of this process or, with `process`, in a process of its own. Its data are in a new directory, which is
    removed at the end, or in `directory`, which stays. They are synced to the disk only with `durable`.

    `security` is "plaintext", "ssl", "sasl_plaintext" or "sasl_ssl": certificates and users are made for the test, and
    `b.security.client_properties()` has what a client needs.
    """
    settings = FOR_TESTS | settings_of(config)
    if ours := [name for name in _OURS if name in settings]:
        raise ValueError(f"{ours[0]} cannot be set: broker() chooses it; use `directory` to choose where data is kept")
    with contextlib.ExitStack() as stack:
        path = Path(directory) if directory is not None else Path(stack.enter_context(_ephemeral_directory()))
        settings["log.dirs"] = str(path)
        secured = None
        if security.lower() != PLAINTEXT.lower():
            from ottla.testing.security import BrokerSecurity

            secured = BrokerSecurity(security, Path(stack.enter_context(_ephemeral_directory())))
            settings = secured.settings() | settings
        made = Broker(path, (ProcessRunner if process else ThreadRunner)(settings, durable), secured)
        stack.callback(made.close)
        made.start()
        if secured is not None and secured.has_sasl:
            secured.add_users(made.bootstrap_servers)
        yield made


@contextlib.contextmanager
def _ephemeral_directory() -> Iterator[str]:
    path = tempfile.mkdtemp(prefix="ottla-test-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def settings_of(config: Mapping[str, object]) -> dict[str, str]:
    """Kafka's settings from keywords: with their dots, and as text."""
    return {
        name if "." in name else name.replace("_", "."): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in config.items()
    }


class Broker:
    """A broker under test. Methods return when they have taken effect."""

    def __init__(self, data_dir: Path, runner: BrokerRunner, security: BrokerSecurity | None = None) -> None:
        self.data_dir = data_dir
        self._security = security
        self.faults = Faults(self._perform)
        self._runner = runner
        self._ports: dict[str, int] = {}
        self._reserved: list[PortReservation] = []
        self._facts: dict[str, Any] = {}
        self._shift_ms = 0

    def __repr__(self) -> str:
        return f"<Broker {self.bootstrap_servers} {'running' if self.is_running else 'stopped'}>"

    @property
    def bootstrap_servers(self) -> str:
        """Host and port for clients; they stay the same after a restart."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def port(self) -> int:
        return self._ports[self._listener]

    @property
    def security(self) -> BrokerSecurity:
        """Certificates and users of a broker that was asked for with `security`."""
        if self._security is None:
            raise BrokerError('the broker has no security; start it with broker(security="sasl_ssl")')
        return self._security

    @property
    def _listener(self) -> str:
        return PLAINTEXT if self._security is None else self._security.protocol

    @property
    def controller_servers(self) -> str:
        """Host and port for tools that connect to the controller (`--bootstrap-controller`)."""
        return f"{LOOPBACK}:{self._ports['CONTROLLER']}"

    @property
    def cluster_id(self) -> str:
        return str(self._facts["cluster_id"])

    @property
    def node_id(self) -> int:
        return int(self._facts["node_id"])

    @property
    def pid(self) -> int:
        """The process that the broker runs in: one of its own with `process=True`, and else this one."""
        return int(self._facts["pid"])

    @property
    def is_running(self) -> bool:
        return self._runner.is_running

    def start(self) -> None:
        """Start again, on the same port and data, after `stop` or `kill`."""
        if self.is_running:
            raise BrokerError("the broker is already running")
        self._release_ports()
        self._facts = self._runner.start(self._listeners(), self._shift_ms)
        self._ports = self._facts["ports"]

    def stop(self) -> None:
        """Stop cleanly: all requests are answered, everything is written."""
        self._end(clean=True)

    def kill(self) -> None:
        """Stop at once, like a crash: connections break, nothing more is written. Acknowledged records stay."""
        self._end(clean=False)

    def restart(self) -> None:
        """Stop cleanly, if the broker runs, and start again."""
        if self.is_running:
            self.stop()
        self.start()

    def close_connections(self) -> int:
        """Close all connections; returns how many there were."""
        return int(self._perform("close_connections"))

    def advance(self, ms: int) -> None:
        """Move the broker's clocks ahead, so that timeouts and retention take effect without waiting."""
        if ms < 0:
            raise ValueError(f"ms={ms}: time cannot go backwards")
        self._perform("advance", ms=ms)
        self._shift_ms += ms

    def close(self) -> None:
        """Stop the broker for good; `broker()` calls this at its end."""
        try:
            if self.is_running:
                self.kill()
        finally:
            self._release_ports()
            self._runner.close()

    def _perform(self, command: str, **arguments: Any) -> Any:  # noqa: ANN401
        if not self.is_running:
            raise BrokerError("the broker does not run")
        return self._runner.perform(command, **arguments)

    def _end(self, *, clean: bool) -> None:
        if not self.is_running:
            raise BrokerError("the broker does not run")
        self._runner.end(clean=clean)
        self._reserve_ports()

    def _listeners(self) -> str:
        names = (self._listener, "CONTROLLER")
        return ",".join(f"{name}://{LOOPBACK}:{self._ports.get(name, 0)}" for name in names)

    def _reserve_ports(self) -> None:
        """Keep the ports from other processes while the broker is down. Nothing listens, so clients are refused."""
        self._reserved += [PortReservation(port) for port in self._ports.values()]

    def _release_ports(self) -> None:
        while self._reserved:
            self._reserved.pop().close()
