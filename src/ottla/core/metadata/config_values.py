"""Values of settings: from text to their type, and the rules they must keep.

=====================  =====================================================================
rule                   the value
=====================  =====================================================================
(empty)                anything of its type
>=1                    a number that is not below
1..9                   a number between the two, both included
in a,b                 one of these words
nocase a,b             one of these words, in any case
text                   not empty
set, set a,b           a list without repetitions, of these words if any are named
set+, set+ a,b         the same, and not empty
gzip-level             -1 or 1 to 9
throttled-replicas     entries such as 0:1 (partition:broker), or * alone
voters                 entries such as 1@host:9093
addresses              entries such as host:9093
host-limits            entries such as 10.0.0.5:100 (address:number)
offset-reset           earliest, latest, or by_duration: with an ISO 8601 duration
=====================  =====================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

_INT_BITS: Final = {"SHORT": 16, "INT": 32, "LONG": 64}
_NUMBER: Final = re.compile(r"[+-]?\d+", re.ASCII)
_ADDRESS: Final = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^:@\s]+):(\d{1,5})")
_DURATION: Final = re.compile(
    r"([+-]?)P(?=.)(?:([+-]?\d+)D)?(?:T(?=.)(?:([+-]?\d+)H)?(?:([+-]?\d+)M)?(?:([+-]?\d+)(?:[.,](\d{1,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)
_DURATION_PARTS_MS: Final = (86_400_000, 3_600_000, 60_000, 1_000)


def convert(kind: str, text: str) -> Any:  # noqa: ANN401
    """The value that a text of a type stands for; ValueError says what is wrong."""
    if kind in _INT_BITS:
        return _integer(text, _INT_BITS[kind])
    if kind == "BOOLEAN":
        if text.lower() not in ("true", "false"):
            raise ValueError("it is true or false")
        return text.lower() == "true"
    if kind == "DOUBLE":
        return _double(text)
    if kind == "LIST":
        return split_list(text)
    return text


def split_list(text: str) -> tuple[str, ...]:
    """The entries of a list, without the blanks around them."""
    return tuple(entry.strip() for entry in text.split(",")) if text.strip() else ()


def _integer(text: str, bits: int) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError("it is a whole number")
    number = int(text)
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise ValueError(f"it is a number of {bits} bits")
    return number


def _double(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("it is a number") from None


def check(rule: str, value: Any) -> None:  # noqa: ANN401
    """ValueError if a value breaks a rule."""
    if not rule:
        return
    word, _, argument = rule.partition(" ")
    special = _SPECIAL.get(word)
    if special is not None:
        special(value, tuple(argument.split(",")) if argument else ())
    elif rule.startswith(">="):
        if value < float(rule[2:]):
            raise ValueError(f"it is at least {rule[2:]}")
    else:
        low, _, high = rule.partition("..")
        if not float(low) <= value <= float(high):
            raise ValueError(f"it is between {low} and {high}")


def _one_of(value: str, words: tuple[str, ...]) -> None:
    if value not in words:
        raise ValueError(f"it is one of {', '.join(words)}")


def _one_of_any_case(value: str, words: tuple[str, ...]) -> None:
    if value.upper() not in words:
        raise ValueError(f"it is one of {', '.join(words)}")


def _not_empty(value: str, words: tuple[str, ...]) -> None:
    if not value:
        raise ValueError("it is not empty")


def _set(value: tuple[str, ...], words: tuple[str, ...]) -> None:
    if len(set(value)) != len(value):
        raise ValueError("no entry is given twice")
    if "" in value:
        raise ValueError("no entry is empty")
    unknown = [entry for entry in value if words and entry not in words]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not one of {', '.join(words)}")


def _set_not_empty(value: tuple[str, ...], words: tuple[str, ...]) -> None:
    if not value:
        raise ValueError("it has at least one entry")
    _set(value, words)


def _gzip_level(value: int, words: tuple[str, ...]) -> None:
    if value != -1 and not 1 <= value <= 9:
        raise ValueError("it is -1 or between 1 and 9")


def _throttled(value: tuple[str, ...], words: tuple[str, ...]) -> None:
    if value != ("*",) and not all(re.fullmatch(r"\d+:\d+", entry, re.ASCII) for entry in value):
        raise ValueError("it is * or a list of partition:broker")


def _voters(value: tuple[str, ...], words: tuple[str, ...]) -> None:
    for entry in value:
        number, _, address = entry.partition("@")
        if not _NUMBER.fullmatch(number):
            raise ValueError(f"{entry!r} is not of the form id@host:port")
        _check_address(address, entry)


def _addresses(value: tuple[str, ...], words: tuple[str, ...]) -> None:
    for entry in value:
        _check_address(entry, entry)


def _check_address(address: str, entry: str) -> None:
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match[2]) > 65_535:
        raise ValueError(f"{entry!r} does not end in host:port")


def host_limits(text: str) -> dict[str, int]:
    """Address -> number, from entries such as 10.0.0.5:100; ValueError for anything else."""
    found = {}
    for entry in split_list(text):
        host, colon, number = entry.rpartition(":")
        if not (colon and host and number.isascii() and number.isdecimal()):
            raise ValueError(f"{entry!r} is not of the form host:number")
        found[host.strip("[]")] = int(number)
    return found


def _host_limits(value: str, words: tuple[str, ...]) -> None:
    host_limits(value)


def duration_ms(text: str) -> int:
    """A duration of days to seconds as ISO 8601 has it; ValueError for anything else."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration")
    sign, *whole, fraction = match.groups()
    ms = sum(int(part) * part_ms for part, part_ms in zip(whole, _DURATION_PARTS_MS, strict=True) if part)
    rest_ms = int((fraction or "").ljust(3, "0")[:3])
    ms += -rest_ms if (whole[-1] or "").startswith("-") else rest_ms
    return -ms if sign == "-" else ms


def _offset_reset(value: str, words: tuple[str, ...]) -> None:
    if value in ("earliest", "latest"):
        return
    name, _, duration = value.partition(":")
    try:
        is_good = name == "by_duration" and duration_ms(duration) >= 0
    except ValueError:
        is_good = False
    if not is_good:
        raise ValueError("it is earliest, latest or by_duration: with a duration such as PT1H")


_SPECIAL: Final[dict[str, Callable[[Any, tuple[str, ...]], None]]] = {
    "in": _one_of,
    "nocase": _one_of_any_case,
    "text": _not_empty,
    "set": _set,
    "set+": _set_not_empty,
    "gzip-level": _gzip_level,
    "throttled-replicas": _throttled,
    "voters": _voters,
    "addresses": _addresses,
    "host-limits": _host_limits,
    "offset-reset": _offset_reset,
}
