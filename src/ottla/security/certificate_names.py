"""Names of users from TLS certificates: the distinguished name as Java writes it, and `ssl.principal.mapping.rules`.

Kafka's ACLs hold names as Java's X500Principal gives them (RFC 2253), so ours must be the same text: the last part
first, joined by commas, keywords for some attributes and dotted numbers with hexadecimal values for all others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from ottla.security.errors import LoginRefused, SecuritySettingError

__all__ = ["distinguished_name", "mapping_rules", "subject_of"]

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
_BEFORE_SUBJECT: Final = 4
"""Parts of a certificate before its subject: serial number, algorithm, issuer, validity."""
_SPECIAL: Final = re.compile(r'([,=+<>#;\\"])')


# --- distinguished names


def subject_of(certificate: bytes) -> bytes:
    """The subject of a certificate in DER. ValueError if it cannot be read."""
    ((_, whole),) = _parts(certificate)
    (_, signed), *_ = _parts(whole)
    parts = [part for part in _parts(signed) if part[0] != _VERSION]
    tag, subject = parts[_BEFORE_SUBJECT] if len(parts) > _BEFORE_SUBJECT else (0, b"")
    if tag != _SEQUENCE:
        raise ValueError("the certificate has no subject")
    return subject


def distinguished_name(subject: bytes) -> str:
    """The text of a name in DER, as Java writes it. ValueError if it cannot be read."""
    return ",".join(reversed([_relative_name(content) for tag, content in _parts(subject) if tag == _SET]))


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


# --- mapping rules

_RULE: Final = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")


def mapping_rules(text: str) -> Callable[[str], str]:
    """How the name in a certificate becomes a user: the first rule whose pattern matches the whole name.

    A rule is `RULE:pattern/replacement/` with L or U behind it for lower or upper case, or DEFAULT for the name as it
    is; the setting is `ssl.principal.mapping.rules`.
    """
    rules: list[tuple[re.Pattern[str] | None, str, str]] = []
    at = 0
    text = text.strip()
    while at < len(text):
        rule = _RULE.match(text, at)
        if rule is None:
            raise SecuritySettingError(
                f"ssl.principal.mapping.rules cannot be read at {text[at : at + 40]!r}; "
                f"a rule is RULE:pattern/replacement/[LU] or DEFAULT"
            )
        rules.append((None, "", "") if rule[1] else _compiled(rule[2], rule[3], rule[4]))
        at = rule.end()
    if not rules:
        rules.append((None, "", ""))

    def user(name: str) -> str:
        for pattern, replacement, case in rules:
            if pattern is None:
                return name
            found = pattern.fullmatch(name)
            if found is not None:
                made = found.expand(replacement)
                return made.lower() if case == "L" else made.upper() if case == "U" else made
        raise LoginRefused(f"no rule of ssl.principal.mapping.rules matches the certificate of {name}")

    return user


def _compiled(pattern: str, replacement: str, case: str) -> tuple[re.Pattern[str], str, str]:
    try:
        compiled = re.compile(pattern.replace("\\/", "/"))
        template = re.sub(r"\$(\d)", r"\\g<\1>", replacement.replace("\\/", "/").replace("\\", "\\\\"))
        compiled.sub(template, "")
    except (re.error, IndexError) as error:
        raise SecuritySettingError(f"ssl.principal.mapping.rules has {pattern!r}: {error}") from None
    return compiled, template, case
