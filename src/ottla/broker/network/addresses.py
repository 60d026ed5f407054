"""Addresses of clients as text, in the one form by which ACLs, quotas and limits know them: Java's."""

from __future__ import annotations

from ipaddress import IPv6Address

__all__ = ["address_text"]


def address_text(address: str) -> str:
    """An address as Java writes it: IPv6 in full, without `::`. What is no address stays as it is.

    A socket that takes both kinds of connections shows IPv4 addresses as IPv6 ones; they are written as what they are.
    """
    if ":" not in address:
        return address
    text, percent, scope = address.partition("%")
    try:
        parsed = IPv6Address(text)
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":")) + percent + scope
