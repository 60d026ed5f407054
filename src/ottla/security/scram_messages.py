"""What the messages of SCRAM (RFC 5802) are made of. As in Kafka, names and passwords are UTF-8, not normalised."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from typing import Final

__all__ = ["GS2_HEADER", "HASHES", "attributes", "decoded", "encoded", "escaped_name", "sign", "unescaped_name", "xor"]

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
GS2_HEADER: Final = "n,,"


def escaped_name(username: str) -> str:
    """A name in which comma and equals sign cannot be taken for SCRAM's own."""
    return username.replace("=", "=3D").replace(",", "=2C")


def unescaped_name(text: str) -> str:
    """The name. ValueError if an equals sign begins no escape."""
    if text.replace("=2C", "").replace("=3D", "").count("="):
        raise ValueError("an equals sign that escapes nothing")
    return text.replace("=2C", ",").replace("=3D", "=")


def attributes(text: str) -> dict[str, str]:
    """`r=...,s=...,i=...` by letter."""
    return {part[0]: part[2:] for part in text.split(",") if part[1:2] == "="}


def encoded(data: bytes) -> str:
    return b64encode(data).decode()


def decoded(text: str) -> bytes:
    """The bytes of base64. ValueError if it is none."""
    return b64decode(text, validate=True)


def sign(algorithm: str, key: bytes, text: str | bytes) -> bytes:
    return hmac.digest(key, text.encode() if isinstance(text, str) else text, algorithm)


def xor(left: bytes, right: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(left, right, strict=True))
