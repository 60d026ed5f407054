"""Parses addresses: HOST:PORT, [IPv6]:PORT, and a port alone if the host has a default."""

from typing import NamedTuple

from ottla.cli.failure import Failure

LOOPBACK = "127.0.0.1"
PORT_MAX = 65_535


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_target(text: str) -> Address:
    """HOST:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or text.endswith("]"):
        raise Failure(
            f"--to {text!r} has no port", f"write HOST:PORT, for instance {text.rstrip(':') or 'localhost'}:9092"
        )
    return Address(_host(host), _port(port, "--to", text, low=1))


def parse_listen(text: str) -> Address:
    """[HOST:]PORT; the default host is the loopback address, and port 0 means any free port."""
    host, _, port = text.rpartition(":")
    return Address(_host(host) or LOOPBACK, _port(port, "--listen", text, low=0))


def _host(text: str) -> str:
    return text.removeprefix("[").removesuffix("]")


def _port(text: str, option: str, whole: str, *, low: int) -> int:
    if text.isascii() and text.isdigit() and low <= int(text) <= PORT_MAX:
        return int(text)
    raise Failure(f"{option} {whole!r}: {text!r} is not a port", f"ports are numbers from {low} to {PORT_MAX}")
