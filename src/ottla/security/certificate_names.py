"""The names in a certificate: the distinguished name of its subject as Java writes it, and its alternative names.

Kafka's ACLs hold names as Java's X500Principal gives them (RFC 2253), so ours must be the same text: the last part
first, joined by commas, keywords for some attributes and dotted numbers with hexadecimal values for all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["alternative_names", "distinguished_name", "subject_of"]

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_TEXTS: Final = {12: "utf-8", 19: "ascii", 20: "latin-1", 22: "ascii", 28: "utf-32-be", 30: "utf-16-be"}
"""Tags of text types."""
_SEQUENCE: Final = 0x30
_SET: Final = 0x31
_OID: Final = 6
_VERSION: Final = 0xA0
_EXTENSIONS: Final = 0xA3
_ALTERNATIVE_NAMES: Final = "2.5.29.17"
_BEFORE_SUBJECT: Final = 4
"""Parts of a certificate before its subject: serial number, algorithm, issuer, validity."""
_SPECIAL: Final = re.compile(r'([,=+<>#;\\"])')


def subject_of(certificate: bytes) -> bytes:
    """The subject of a certificate in DER. ValueError if it cannot be read."""
    parts = [part for part in _signed_parts(certificate) if part[0] != _VERSION]
    tag, subject = parts[_BEFORE_SUBJECT] if len(parts) > _BEFORE_SUBJECT else (0, b"")
    if tag != _SEQUENCE:
        raise ValueError("the certificate has no subject")
    return subject


def alternative_names(certificate: bytes) -> frozenset[tuple[int, bytes]]:
    """Hosts, addresses and other names of a certificate in DER, each with its tag. ValueError if it cannot be read."""
    for tag, extensions in _signed_parts(certificate):
        if tag != _EXTENSIONS:
            continue
        ((_, listed),) = _parts(extensions)
        for _, extension in _parts(listed):
            (_, oid), *_, (_, value) = _parts(extension)
            if _dotted(oid) == _ALTERNATIVE_NAMES:
                ((_, names),) = _parts(value)
                return frozenset(_parts(names))
    return frozenset()


def distinguished_name(subject: bytes) -> str:
    """The text of a name in DER, as Java writes it. ValueError if it cannot be read."""
    return ",".join(reversed([_relative_name(content) for tag, content in _parts(subject) if tag == _SET]))


def _signed_parts(certificate: bytes) -> Iterator[tuple[int, bytes]]:
    """What the issuer has signed: serial number, issuer, subject and so on."""
    ((_, whole),) = _parts(certificate)
    (_, signed), *_ = _parts(whole)
    return _parts(signed)


def _relative_name(content: bytes) -> str:
    return "+".join(_attribute(pair) for _, pair in _parts(content))


def _attribute(pair: bytes) -> str:
    (_, raw_oid), (tag, value) = _parts(pair)
    oid = _dotted(raw_oid)
    keyword = _KEYWORDS.get(oid)
    if keyword is None or tag not in _TEXTS:
        return f"{keyword or oid}=#{_header(tag, len(value)).hex()}{value.hex()}"
    return f"{keyword}={_escaped(value.decode(_TEXTS[tag]))}"


def _escaped(text: str) -> str:
    text = _SPECIAL.sub(r"\\\1", text)
    if text.startswith(" "):
        text = f"\\{text}"
    if text.endswith(" ") and len(text) > 1 and text[-2] != "\\":
        text = f"{text[:-1]}\\ "
    return text


def _dotted(raw: bytes) -> str:
    numbers, value = [], 0
    if not raw or raw[-1] & 0x80:
        raise ValueError("the certificate has a number that is cut off")
    for byte in raw:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(str(each) for each in (first, numbers[0] - 40 * first, *numbers[1:]))


def _parts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of the values that follow each other in DER."""
    at = 0
    while at < len(data):
        try:
            tag, size = data[at], data[at + 1]
            at += 2
            if size & 0x80:
                count = size & 0x7F
                size = int.from_bytes(data[at : at + count], "big")
                at += count
        except IndexError:
            raise ValueError("the certificate is cut off") from None
        if at + size > len(data):
            raise ValueError("the certificate is cut off")
        yield tag, data[at : at + size]
        at += size


def _header(tag: int, size: int) -> bytes:
    if size < 0x80:
        return bytes((tag, size))
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length
