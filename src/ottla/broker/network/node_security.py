"""The security of a node's listeners, and of its connections to other nodes, as the settings in force say it.

Settings can change while the node runs, and so can the files that they name: certificates are replaced. What cannot be
used then is logged, and what was in force stays.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Callable, Mapping
from typing import Final

from ottla.broker.config.node_config import ConfigError, ListenerConfig, NodeConfig
from ottla.broker.network.listener_security import (
    Credentials,
    ListenerSecurity,
    ListenerSettings,
    listener_security,
    listener_tls,
)
from ottla.broker.network.web_server import is_loopback
from ottla.broker.peers.peer_connection import Dial
from ottla.broker.peers.peer_security import PeerSecurity, peer_security
from ottla.security.errors import SecuritySettingError
from ottla.security.stores import store_files
from ottla.security.tls import server_tls

__all__ = ["NodeSecurity", "web_security"]

log = logging.getLogger(__name__)

_PREFIXES: Final = ("ssl.", "sasl.", "listener.name.", "connection.failed.", "connections.max.reauth")
"""Settings that this is about begin so; those of mechanisms without a listener are sought below."""
_Version = tuple[tuple[str, int, int], ...]


def web_security(config: NodeConfig) -> tuple[ssl.SSLContext | None, bool]:
    """TLS of the node's web pages, and whether they want a login: those of the listener that the settings name."""
    name = config["ottla.web.security.listener.name"]
    if not name:
        return None, False
    listener = next((each for each in config.listeners if each.name == name.upper()), None)
    if listener is None:
        raise ConfigError(f"ottla.web.security.listener.name is {name}, which is not in listeners")
    try:
        own = ListenerSettings(config.static, listener.name)
        tls = server_tls(own.tls_of(listener)).context if listener.has_tls else None
    except SecuritySettingError as error:
        raise ConfigError(f"listener {listener.name}: {error}") from None
    return tls, listener.has_sasl


class NodeSecurity:
    def __init__(
        self, config: NodeConfig, settings: Callable[[], Mapping[str, str]], credentials: Credentials, dial: Dial
    ) -> None:
        """`settings` gives what is set, the dynamic settings on top of the node's own. Raises ConfigError."""
        self._config = config
        self._settings = settings
        self._credentials = credentials
        self._dial = dial
        self._used: Mapping[str, str] = {}
        self._files: _Version = ()
        self.by_listener: dict[str, ListenerSecurity] = {}
        self.of_controllers: PeerSecurity
        self.of_brokers: PeerSecurity
        self._load()
        for listener in config.listeners:
            for note in self.by_listener[listener.name].notes:
                log.warning("listener %s: %s", listener.name, note)
            if not is_loopback(listener.host) and not self.by_listener[listener.name].knows_clients:
                log.warning(
                    "listener %s on %s accepts clients without authentication; use SASL or ssl.client.auth=required",
                    listener.name,
                    listener.host or "all addresses",
                )

    @property
    def is_guarded(self) -> bool:
        """Whether any listener has TLS or wants a login."""
        return any(each.mechanisms or each.tls is not None for each in self.by_listener.values())

    def check_tls(self, changes: Mapping[str, str | None]) -> None:
        """ConfigError if a listener's TLS could not work with changed settings; None takes a setting away."""
        settings = {name: text for name, text in {**self._of_security(), **changes}.items() if text is not None}
        for listener in self._config.listeners:
            listener_tls(listener, settings, self.by_listener[listener.name])

    def follow(self) -> bool:
        """Take over changed settings and files; whether there were any."""
        settings = self._of_security()
        if settings == self._used and self._file_versions(settings) == self._files:
            return False
        try:
            self._load()
        except ConfigError as error:
            log.warning("changed security settings were rejected: %s", error)
            self._used, self._files = settings, self._file_versions(settings)
            return False
        return True

    def _of_security(self) -> Mapping[str, str]:
        return {
            name: text
            for name, text in self._settings().items()
            if name.startswith(_PREFIXES) or name.endswith("sasl.jaas.config")
        }

    def _load(self) -> None:
        settings = self._of_security()
        files = self._file_versions(settings)
        by_listener = {
            each.name: listener_security(each, settings, self._credentials, self.by_listener.get(each.name))
            for each in self._config.listeners
        }
        config = self._config
        self.of_controllers = self._peer_security(
            config.controller_endpoint, config["sasl.mechanism.controller.protocol"], settings
        )
        self.of_brokers = self._peer_security(
            config.broker_endpoint, config["sasl.mechanism.inter.broker.protocol"], settings
        )
        self.by_listener, self._used, self._files = by_listener, settings, files

    def _peer_security(self, listener: ListenerConfig, mechanism: str, settings: Mapping[str, str]) -> PeerSecurity:
        own = ListenerSettings(settings, listener.name)
        of_mechanism = ListenerSettings(settings, listener.name, mechanism)
        jaas = of_mechanism.name_of("sasl.jaas.config"), of_mechanism.text("sasl.jaas.config")
        try:
            return peer_security(listener.security_protocol, mechanism, own.tls(), jaas, self._dial)
        except SecuritySettingError as error:
            raise ConfigError(f"listener {listener.name}: {error}") from None

    def _file_versions(self, settings: Mapping[str, str]) -> _Version:
        names = {
            path
            for listener in (*self._config.listeners, self._config.controller_endpoint)
            for path in store_files(ListenerSettings(settings, listener.name).tls())
        }
        return tuple(_version(path) for path in sorted(names))


def _version(path: str) -> tuple[str, int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return path, 0, 0
    return path, found.st_mtime_ns, found.st_ino
