"""Reads bytes from pasted text: hex in many forms, base64, or the bytes themselves.

Recognised forms: plain hex with spaces, colons, commas or line breaks; `0x` and `\\x` before bytes; dumps of xxd,
hexdump -C, od -A x -t x1 and tcpdump -X, with offsets and the text column; base64, also URL-safe. Text that is both hex
and base64 is read as hex. Data that is not text is taken as it is.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Literal

__all__ = ["Form", "InputError", "bytes_from_text", "bytes_of"]

Form = Literal["hex", "base64", "raw"]

_TEXT_BYTES = frozenset(range(0x20, 0x7F)) | {0x09, 0x0A, 0x0D}
_SEPARATORS = re.compile(r"[\s:,;_|-]+")
_PREFIXES = re.compile(r"0x|\\x", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-fA-F]*")
_NOT_HEX = re.compile(r"[^0-9a-fA-F]")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
# An offset, then bytes or pairs of bytes, then optionally a text column after two spaces or a bar.
_DUMP_LINE = re.compile(
    r"\s*(?:0x)?(?P<offset>[0-9a-fA-F]{4,16})(?P<colon>:?)\s+"
    r"(?P<hex>(?:[0-9a-fA-F]{2}){1,8}(?:[ \t]{1,2}(?:[0-9a-fA-F]{2}){1,8})*)"
    r"(?:\s*$|\s{2,}.*$|\s+\|.*$)"
)
_LAST_OFFSET = re.compile(r"\s*(?:0x)?[0-9a-fA-F]{4,16}:?\s*")
_DUMP_LINE_BYTES_MAX = 64


class InputError(ValueError):
    """The text is not in any of these forms: what is wrong, and what to do."""

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(f"{problem}; {advice}" if advice else problem)
        self.problem = problem
        self.advice = advice


def bytes_of(data: bytes, form: Form | None = None) -> bytes:
    """The bytes in a file or standard input: decoded from hex or base64, or as they are."""
    if form == "raw":
        return data
    is_text = all(byte in _TEXT_BYTES for byte in data)
    if form is None and not is_text:
        return data
    if not is_text:
        at = next(index for index, byte in enumerate(data) if byte not in _TEXT_BYTES)
        raise InputError(f"byte {at} is {data[at]:#04x}, which is not text", "omit --as, or use --as raw")
    return bytes_from_text(data.decode("ascii"), form)


def bytes_from_text(text: str, form: Form | None = None) -> bytes:
    """The bytes that a text encodes. Raises InputError."""
    if form == "raw":
        return text.encode("utf-8", "surrogateescape")
    if not text.strip():
        raise InputError("no bytes to decode", "give hex, base64, @FILE or - for standard input")
    if form == "base64":
        return _from_base64(text)
    dump = _from_dump(text)
    if dump is not None:
        return dump
    digits = _SEPARATORS.sub("", _PREFIXES.sub("", text))
    if _HEX.fullmatch(digits):
        return _from_digits(digits)
    if form is None and _looks_like_base64(text):
        return _from_base64(text)
    raise _not_hex(text)


def _from_digits(digits: str) -> bytes:
    if len(digits) % 2:
        raise InputError(
            f"{len(digits)} hex digits are an odd number", f"one is missing or one too many near '…{digits[-8:]}'"
        )
    return bytes.fromhex(digits)


def _not_hex(text: str) -> InputError:
    plain = _PREFIXES.sub(lambda match: " " * len(match[0]), text)
    bad = next(match for match in _NOT_HEX.finditer(plain) if not _SEPARATORS.match(match[0]))
    if _BASE64.fullmatch("".join(text.split())):
        return InputError(
            f"character {bad.start() + 1} is {bad[0]!r}, which is not a hex digit", "if this is base64, add --as base64"
        )
    return InputError(
        f"character {bad.start() + 1} is {bad[0]!r}, which is neither hex nor base64",
        "'ottla decode --help' shows what can be given",
    )


def _looks_like_base64(text: str) -> bool:
    packed = "".join(text.split())
    if not _BASE64.fullmatch(packed) or len(packed) % 4 == 1:
        return False
    # One other letter among hex digits is a typo. Base64 of a frame may be mostly A, for zeros, but it mixes cases.
    letters = [char for char in packed.rstrip("=") if not _HEX.fullmatch(char)]
    is_mixed = len(letters) > 1 and not packed.islower() and not packed.isupper()
    return is_mixed or 4 * len(letters) > len(packed) or packed.endswith("=")


def _from_base64(text: str) -> bytes:
    packed = "".join(text.split()).rstrip("=")
    url_safe = b"-_" if set(packed) & {"-", "_"} else None
    try:
        return base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=url_safe, validate=True)
    except (ValueError, binascii.Error) as error:
        raise InputError(f"not base64: {error}", "check that it was copied completely") from None


def _from_dump(text: str) -> bytes | None:
    """The bytes of a hex dump, in which every line has an offset and the offsets add up; None for other text."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = bytearray()
    start: int | None = None
    for index, line in enumerate(lines):
        match = _DUMP_LINE.fullmatch(line)
        if match is None:
            if index and index == len(lines) - 1 and _LAST_OFFSET.fullmatch(line):
                break  # hexdump ends with the offset after the last byte
            return None
        offset = int(match["offset"], 16)
        start = offset if start is None else start
        if offset != start + len(found) or not (match["colon"] or _is_bare_offset(match, len(lines))):
            return None
        found += bytes.fromhex("".join(match["hex"].split()))[:_DUMP_LINE_BYTES_MAX]
    return bytes(found) if found else None


def _is_bare_offset(match: re.Match[str], line_count: int) -> bool:
    """Whether a number without a colon is an offset and not bytes: the dump has more lines, or it is long and zero."""
    if line_count > 1:
        return True
    return len(match["offset"]) >= 7 and int(match["offset"], 16) == 0 and len(match["hex"].split()[0]) == 2
