"""The first voters of a quorum, as formatting names them: `1@host:port:directory,2@host:port:directory`."""

from __future__ import annotations

from ottla.core.quorum.voters import Listener, Voter, VoterSet
from ottla.wire import uuid_bytes

__all__ = ["read_initial_controllers"]

_PORT_MAX = 65_535


def read_initial_controllers(text: str, listener: str) -> VoterSet:
    """Voters that are reached by the listener of that name. ValueError says which entry is wrong, and why."""
    voters = [_voter(entry.strip(), listener) for entry in text.split(",")]
    for name, keys in (
        ("id", [each.voter_id for each in voters]),
        ("directory", [each.directory_id for each in voters]),
    ):
        if len(set(keys)) < len(keys):
            raise ValueError(f"two of the initial controllers have the same {name}: {text}")
    return VoterSet(tuple(sorted(voters, key=lambda each: each.voter_id)))


def _voter(entry: str, listener: str) -> Voter:
    number, at, rest = entry.partition("@")
    address, _, directory = rest.rpartition(":")
    host, _, port = address.rpartition(":")
    if not (at and host and _is_number(number) and _is_number(port) and 0 < int(port) <= _PORT_MAX):
        raise ValueError(f"{entry!r} is not a controller; write ID@HOST:PORT:DIRECTORY_ID")
    try:
        directory_id = uuid_bytes(directory)
    except ValueError as error:
        raise ValueError(f"{entry!r} has no directory id: {error}") from None
    return Voter(int(number), directory_id, (Listener(listener, host.strip("[]"), int(port)),))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal()
