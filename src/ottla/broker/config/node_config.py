"""The configuration of a node: where its settings come from, and what they say.

Settings have Kafka's names. Of several places the later one counts: ottla's own defaults, the properties file, the
environment (`OTTLA_NUM_PARTITIONS` is num.partitions), `--set`, and the options of the command line. A name that
neither Kafka nor ottla knows and a value that a setting cannot have are errors; what Kafka knows and ottla does not
support is accepted, and named in one warning. Values can come from config providers: see
`ottla.broker.config.providers`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

from ottla.broker.config.group_bounds import check_group_bounds
from ottla.broker.config.providers import PROVIDERS, Providers
from ottla.broker.config.supported_settings import SUPPORTED_SETTINGS, unsupported_text
from ottla.core.metadata.config_defs import ConfigError, broker_defs
from ottla.core.metadata.config_values import split_list
from ottla.core.replication.replica_selection import RACK_AWARE, SELECTORS
from ottla.wire.properties import read_properties

__all__ = [
    "ConfigError",
    "ListenerConfig",
    "NodeConfig",
    "StartError",
    "UnknownSettings",
    "environment_settings",
    "file_settings",
    "set_option",
]

ENVIRONMENT_PREFIX: Final = "OTTLA_"
_OF_COMMANDS: Final = frozenset({"OTTLA_BOOTSTRAP", "OTTLA_PROFILE"})
"""Variables that are no settings: they tell other commands of `ottla` where the cluster is."""
DEFAULT_PORT: Final = 9092
LOOPBACK: Final = "127.0.0.1"

OWN_DEFAULTS: Final[dict[str, str]] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    # A quorum of one need not show its followers that it lives, and each record costs a sync of the disk.
    "metadata.max.idle.interval.ms": "0",
}
"""Where ottla's defaults are not Apache Kafka's; docs/reference/differences.md tells why."""

_PASSING_PREFIXES: Final = ("listener.name.",)
_PLUGIN_PREFIXES: Final = {
    PROVIDERS: f"{PROVIDERS}.",
    "group.streams.topology.description.plugin.class": "group.streams.topology.description.plugin.",
    "remote.log.storage.manager.class.name": "rsm.config.",
    "remote.log.metadata.manager.class.name": "rlmm.config.",
}
_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
_WILDCARDS: Final = ("", "0.0.0.0", "::")


class StartError(Exception):
    """The node cannot start; the text says why and what can be done."""


class UnknownSettings(ConfigError):
    """Settings that neither Kafka nor ottla knows."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        super().__init__("; ".join(broker_defs().unknown(name) for name in self.names))


class ListenerConfig(NamedTuple):
    """One listener: where it listens, or (as one of `NodeConfig.advertised`) where clients reach it."""

    name: str
    host: str
    port: int
    security_protocol: int = 0

    @property
    def has_tls(self) -> bool:
        return self.security_protocol in (_PROTOCOLS["SSL"], _PROTOCOLS["SASL_SSL"])

    @property
    def has_sasl(self) -> bool:
        return self.security_protocol in (_PROTOCOLS["SASL_PLAINTEXT"], _PROTOCOLS["SASL_SSL"])

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


# --- where settings come from -----------------------------------------------------------------------------------------


def file_settings(path: str) -> dict[str, str]:
    """The settings in a properties file. Raises ConfigError if it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            return read_properties(file.read())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the configuration {path}: {error}") from None


def environment_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings in the environment: `_` stands for a dot, `__` for an underscore and `___` for a dash."""
    found = {}
    for variable, value in environment.items():
        if variable.startswith(ENVIRONMENT_PREFIX) and variable not in _OF_COMMANDS:
            name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
            found[name.replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")] = value
    return found


def set_option(text: str) -> tuple[str, str]:
    """The setting in a `--set key=value`."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigError(f"--set {text} has no value; write --set name=value")
    return name.strip(), value.strip()


def local_listeners(port: int) -> str:
    """The listeners of a node that was told a port and no more: this machine only, the controller beside it."""
    controller_port = port + 1 if port else 0
    return f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}"


# --- the configuration ------------------------------------------------------------------------------------------------


class NodeConfig:
    """A node's own settings. `config["num.partitions"]` has the setting's type; it knows nothing of dynamic ones."""

    def __init__(self, *places: Mapping[str, str], port: int = DEFAULT_PORT) -> None:
        """`places` are maps of settings, the weakest first. `port` is for clients, if no listeners are set."""
        merged = dict(OWN_DEFAULTS)
        for place in places:
            merged.update(place)
        # Nobody asked for the controller's port: if it is taken, any other will do.
        self.may_move_controller = "listeners" not in merged
        merged.setdefault("listeners", local_listeners(port))
        self.providers = Providers()
        self.static: dict[str, str] = self.providers.resolved(merged)
        """All that was set, as text."""
        self._values: dict[str, Any] = {}
        try:
            self._check()
        except UnknownSettings:
            raise
        except ConfigError as error:
            raise ConfigError(self.providers.hide(str(error))) from None

    def _check(self) -> None:
        unknown = [name for name in self.static if name not in broker_defs() and not self._passes(name)]
        if unknown:
            raise UnknownSettings(unknown)
        for name in self.static:
            if name in broker_defs():
                _ = self[name]
        _ = self.listeners, self.advertised, self.log_dirs
        self._check_roles()
        self._check_selector()
        self.check_cordoned(self["cordoned.log.dirs"])
        check_group_bounds(self.static, self.__getitem__)

    def check_cordoned(self, paths: Sequence[str]) -> None:
        """Raise ConfigError if these are not log directories of the node, or all of them (`*`)."""
        if "*" in paths and len(paths) > 1:
            raise ConfigError("cordoned.log.dirs has * and others; * alone stands for all log directories")
        for path in paths:
            if path != "*" and os.path.abspath(path) not in self.log_dirs:
                raise ConfigError(f"cordoned.log.dirs has {path}, which is not in log.dirs")

    def _check_selector(self) -> None:
        name = self["replica.selector.class"]
        if name is not None and name not in SELECTORS:
            raise ConfigError(
                f"replica.selector.class: {name} is a Java class, which ottla cannot load; "
                f"leave it out, or set {RACK_AWARE}"
            )

    def _passes(self, name: str) -> bool:
        """Whether a name that no table has belongs to a listener or to a plugin that is configured."""
        if name.startswith(_PASSING_PREFIXES):
            return True
        return any(name.startswith(prefix) and key in self.static for key, prefix in _PLUGIN_PREFIXES.items())

    def _check_roles(self) -> None:
        names = {listener.name for listener in self.listeners}
        for_controllers = self["controller.listener.names"]
        for name in for_controllers:
            if self.is_controller and name not in names:
                raise ConfigError(f"controller.listener.names has {name}, which is not in listeners")
            if not self.is_controller and name in names:
                raise ConfigError(f"listeners has the controller listener {name}, but this node is only a broker")
        for name in set(self["early.start.listeners"] or ()) - names:
            raise ConfigError(f"early.start.listeners has {name}, which is not in listeners")
        for_clients = names - set(for_controllers)
        if self.is_broker and not for_clients:
            raise ConfigError("listeners has no listener for clients: all are in controller.listener.names")
        if not self.is_broker and for_clients:
            raise ConfigError(f"listeners has {min(for_clients)}, but a node that is only a controller has no clients")
        self._check_voters()
        if not self.is_controller and not (self.voters or self.bootstrap_servers):
            raise ConfigError(
                "a node that is only a broker needs its controllers: set controller.quorum.bootstrap.servers"
            )

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        if name not in self._values:
            key = broker_defs()[name]
            self._values[name] = key.parse(self.static.get(name, key.default))
        return self._values[name]

    def settle(self, name: str, text: str) -> None:
        """Set what the settings left to the start, such as a port in place of 0."""
        self.static[name] = text
        self._values.pop(name, None)

    def _check_voters(self) -> None:
        ids = [entry.partition("@")[0] for entry in self["controller.quorum.voters"]]
        twice = next((each for each in ids if ids.count(each) > 1), None)
        if twice is not None:
            raise ConfigError(f"controller.quorum.voters has node {twice} twice")
        if ids and self.is_controller and self.node_id not in self.voters:
            raise ConfigError(
                f"this is controller {self.node_id}, which is not in controller.quorum.voters: "
                f"correct node.id or controller.quorum.voters"
            )

    # --- identity and directories

    @property
    def is_broker(self) -> bool:
        return "broker" in self["process.roles"]

    @property
    def is_controller(self) -> bool:
        return "controller" in self["process.roles"]

    @property
    def node_id(self) -> int:
        return int(self["node.id"])

    @cached_property
    def log_dirs(self) -> tuple[str, ...]:
        dirs = self["log.dirs"] or self["log.dir"]
        return tuple(dict.fromkeys(os.path.abspath(path) for path in dirs))

    @property
    def metadata_dir(self) -> str:
        path = self["metadata.log.dir"]
        return os.path.abspath(path) if path else self.log_dirs[0]

    @property
    def all_dirs(self) -> tuple[str, ...]:
        """The log directories, and that of the metadata if it is apart."""
        return tuple(dict.fromkeys((*self.log_dirs, self.metadata_dir)))

    # --- listeners

    @cached_property
    def listeners(self) -> tuple[ListenerConfig, ...]:
        found = tuple(self._listener("listeners", text) for text in self["listeners"])
        _check_names(found)
        return found

    @cached_property
    def advertised(self) -> dict[str, ListenerConfig]:
        """Where clients and other nodes reach each listener; port 0 is the one it will be bound to."""
        given = {each.name: each for each in self._given_advertised()}
        return {each.name: given.get(each.name) or _reachable(each) for each in self.listeners}

    def _given_advertised(self) -> list[ListenerConfig]:
        given = [self._listener("advertised.listeners", text) for text in self["advertised.listeners"] or ()]
        _check_names(given)
        names = {listener.name for listener in self.listeners}
        for each in given:
            if each.name not in names:
                raise ConfigError(f"advertised.listeners has {each.name}, which is not in listeners")
            if each.host in _WILDCARDS:
                raise ConfigError(f"advertised.listeners has {each}, an address that clients cannot connect to")
        return given

    @property
    def controller_listener(self) -> str:
        """The listener by which other controllers reach this one."""
        return str(self["controller.listener.names"][0])

    @property
    def controller_endpoint(self) -> ListenerConfig:
        """How that listener is secured, also if this node has none."""
        name = self.controller_listener
        return ListenerConfig(name, "", 0, self._protocol(name))

    @property
    def broker_endpoint(self) -> ListenerConfig:
        """How the listener is secured by which brokers reach each other."""
        name, protocol = self["inter.broker.listener.name"], self["security.inter.broker.protocol"]
        if name:
            return ListenerConfig(name.upper(), "", 0, self._protocol(name.upper()))
        found = next((each for each in self.client_listeners if each.security_protocol == protocol), None)
        return found or ListenerConfig(protocol, "", 0, protocol)

    @property
    def client_listeners(self) -> tuple[ListenerConfig, ...]:
        return tuple(each for each in self.listeners if each.name not in self["controller.listener.names"])

    def _listener(self, setting: str, text: str) -> ListenerConfig:
        name, separator, address = text.partition("://")
        host, colon, port = address.rpartition(":")
        if not (separator and colon and name and port.isascii() and port.isdecimal() and int(port) <= 65_535):
            raise ConfigError(f"{setting} has {text!r}; a listener is NAME://host:port")
        return ListenerConfig(name.upper(), host.strip("[]"), int(port), self._protocol(name.upper()))

    def _protocol(self, name: str) -> int:
        protocols = dict(entry.split(":", 1) for entry in split_list(self["listener.security.protocol.map"] or ""))
        protocol = protocols.get(name)
        is_mapped = "listener.security.protocol.map" in self.static
        if protocol is None and name in self["controller.listener.names"] and not is_mapped:
            protocol = "PLAINTEXT"
        if protocol not in _PROTOCOLS:
            raise ConfigError(f"listener {name} has no security protocol; name one in listener.security.protocol.map")
        return _PROTOCOLS[protocol]

    # --- the quorum

    @property
    def voters(self) -> dict[int, tuple[str, int]]:
        """controller.quorum.voters: id -> address."""
        found = {}
        for entry in self["controller.quorum.voters"]:
            number, _, address = entry.partition("@")
            found[int(number)] = _address(address)
        return found

    @property
    def bootstrap_servers(self) -> list[tuple[str, int]]:
        """controller.quorum.bootstrap.servers."""
        return [_address(text) for text in self["controller.quorum.bootstrap.servers"]]

    def other_controllers(self) -> list[str]:
        """Controllers that the configuration names and that are not this node."""
        own = {(each.host, each.port) for each in self.listeners if each.name == self.controller_listener}
        own |= {(host, port) for _, port in own for host in ("localhost", LOOPBACK, "::1", _host_name())}
        advertised = self.advertised.get(self.controller_listener)
        if advertised is not None:
            own.add((advertised.host, advertised.port))
        servers = [text for text in self["controller.quorum.bootstrap.servers"] if _address(text) not in own]
        return servers + [f"{number}@{address[0]}" for number, address in self.voters.items() if number != self.node_id]

    # --- what to tell people

    def warnings(self) -> list[str]:
        """A warning about settings that ottla does not support, if there are any."""
        unsupported = [
            name
            for name, value in self.static.items()
            if name in broker_defs() and name not in SUPPORTED_SETTINGS and value != broker_defs()[name].default
        ]
        return [unsupported_text(unsupported)] if unsupported else []


def _check_names(listeners: Iterable[ListenerConfig]) -> None:
    names: set[str] = set()
    for listener in listeners:
        if listener.name in names:
            raise ConfigError(f"listener {listener.name} is given twice")
        names.add(listener.name)


def _host_name() -> str:
    import platform  # seldom needed, and worth milliseconds of a start

    return platform.node()


def _reachable(listener: ListenerConfig) -> ListenerConfig:
    return listener._replace(host=_host_name()) if listener.host in _WILDCARDS else listener


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)
