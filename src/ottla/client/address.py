"""Where brokers are: addresses as people write them, and as errors name them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.client.errors import ConfigurationError

__all__ = ["Address", "Peer", "parse_address", "parse_bootstrap_servers"]

PORT_MAX: Final = 65_535


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Peer(NamedTuple):
    """A broker as an error names it; its node id is not known while we only have the address that the user gave."""

    address: Address
    node_id: int | None = None

    def __str__(self) -> str:
        return str(self.address) if self.node_id is None else f"broker {self.node_id} ({self.address})"


def parse_bootstrap_servers(servers: str | Iterable[str]) -> tuple[Address, ...]:
    """`host:port,host:port`, or several such texts; ConfigurationError for what is not an address."""
    texts = [servers] if isinstance(servers, str) else list(servers)
    words = [word.strip() for text in texts for word in text.split(",") if word.strip()]
    if not words:
        raise ConfigurationError("no bootstrap server given; write HOST:PORT, for example localhost:9092")
    return tuple(dict.fromkeys(map(parse_address, words)))


def parse_address(text: str) -> Address:
    """HOST:PORT or [IPv6]:PORT, with or without a listener's name and `://` before it, as Kafka prints them."""
    host, colon, port = text.rpartition("://")[2].rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not colon or not bare or (":" in bare and not host.startswith("[")):
        raise ConfigurationError(f"{text!r} is not an address; write HOST:PORT, for example localhost:9092")
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= PORT_MAX):
        raise ConfigurationError(f"{text!r}: {port!r} is not a port; ports are numbers from 1 to {PORT_MAX}")
    return Address(bare, int(port))
