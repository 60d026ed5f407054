"""The input of `ottla decode`: the bytes, and the message and version that the user names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from ottla.cli.failure import Failure, nearest
from ottla.explain.guess import RECORD_BATCH
from ottla.explain.input_text import Form, InputError, bytes_from_text, bytes_of

INPUT_BYTES_MAX = 64 * 1024 * 1024
"""The largest input; captures may have any size."""
CAPTURE_BYTES_MIN = 24
CAPTURE_MAGICS = (b"\xa1\xb2", b"\xd4\xc3", b"\x4d\x3c\xb2\xa1", b"\x34\xcd\xb2\xa1", b"\x0a\x0d\x0d\x0a")


class DecodeInput(NamedTuple):
    """The bytes, and the names of the message that the user gave; none if it is to be guessed."""

    names: tuple[str, ...]
    version: int | None
    data: bytes


def read_input(words: tuple[str, ...], form: Form | None) -> DecodeInput:
    """The names, version and bytes on the command line. Raises a Failure if they are wrong."""
    if not words:
        raise Failure("nothing to decode", "give hex, base64, @FILE, - for standard input, or --pcap FILE")
    names, version, rest = _named(words)
    if not rest:
        raise Failure(f"no bytes after '{' '.join(words)}'", "give hex, base64, @FILE or - for standard input")
    data, source = _input(rest, form)
    if not data:
        raise Failure(f"{source} holds no bytes", "there is nothing to decode")
    _refuse_capture(names, data, source)
    return DecodeInput(names, version, data)


def _named(words: tuple[str, ...]) -> tuple[tuple[str, ...], int | None, tuple[str, ...]]:
    """Message names, version and the remaining words, which are the bytes."""
    from ottla.explain.lookup import NotFound, find
    from ottla.explain.prose import message_of

    first, rest = words[0], words[1:]
    if first.lower() == RECORD_BATCH.lower():
        return (RECORD_BATCH,), None, rest
    if not _may_be_name(first, len(words)):
        return (), None, words
    options = []
    while len(rest) > 1 and (_is_version(rest[0]) or rest[0].lower() in ("request", "response")):
        options.append(rest[0])
        rest = rest[1:]
    try:
        if find([first])[0].kind == "error":
            raise Failure(f"{first} is an error, not a message", f"'ottla explain {first}' explains it")
        refs = find([first, *options])
    except NotFound as refusal:
        raise Failure(refusal.problem, refusal.advice) from None
    version = next((int(word.removeprefix("v")) for word in options if _is_version(word)), None)
    return tuple(message_of(ref) for ref in refs), version, rest


def _may_be_name(word: str, count: int) -> bool:
    """Whether the first word is meant as a name: not a file, not standard input, and not bytes."""
    if word.startswith(("@", "-")) or not word.isidentifier():
        return False
    try:
        bytes_from_text(word, "hex")
    except InputError:
        return count > 1 or _is_known(word)
    return False


def _is_known(word: str) -> bool:
    from ottla.explain.lookup import NotFound, find

    try:
        return bool(find([word]))
    except NotFound:
        return False


def _is_version(word: str) -> bool:
    return word.removeprefix("v").isdecimal() and len(word) <= 3


def _input(words: tuple[str, ...], form: Form | None) -> tuple[bytes, str]:
    try:
        if words == ("-",):
            return bytes_of(_read(sys.stdin.buffer.read(INPUT_BYTES_MAX + 1), "standard input"), form), "standard input"
        if words[0].startswith("@"):
            return bytes_of(_read_file(" ".join(words)[1:]), form), words[0][1:]
        return bytes_from_text(" ".join(words), form), "the input"
    except InputError as refusal:
        raise Failure(refusal.problem, refusal.advice) from None


def _read_file(name: str) -> bytes:
    try:
        with Path(name).open("rb") as file:
            return _read(file.read(INPUT_BYTES_MAX + 1), name)
    except OSError as refusal:
        raise Failure(f"cannot read {name}: {refusal.strerror}", nearest_file(name)) from None


def _read(data: bytes, source: str) -> bytes:
    if len(data) > INPUT_BYTES_MAX:
        size = INPUT_BYTES_MAX // 1024 // 1024
        raise Failure(f"{source} is larger than {size} MiB", f"decode a part of it: head -c {INPUT_BYTES_MAX} FILE")
    return data


def nearest_file(name: str) -> str:
    path = Path(name)
    try:
        siblings = [str(path.parent / other.name) for other in path.parent.iterdir()]
    except OSError:
        return ""
    return nearest(str(path), siblings)


def _refuse_capture(names: tuple[str, ...], data: bytes, source: str) -> None:
    if not names and data.startswith(CAPTURE_MAGICS) and len(data) >= CAPTURE_BYTES_MIN:
        name = "-" if source == "standard input" else source
        raise Failure(f"{source} is a packet capture", f"decode it with --pcap {name}")
