"""Options of the formats: one table for each, which is a frozen dataclass.

    @dataclass(frozen=True)
    class TopicOptions(ClusterOptions):
        subscribe: tuple[str, ...] = option("subscribe", names, ())
        min_partitions: int | None = option("minPartitions", positive, None)

    read_options(TopicOptions, options)

The name is the one that users write, in any case; the check turns the text into a value or raises ValueError with the
end of a sentence; the default is used if the option is not given. An unknown name is an error that names the nearest
known one, because a typo in `maxOffsetsPerTrigger` would otherwise be found in production.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, TypeVar

from ottla.spark.errors import OttlaSparkError

__all__ = [
    "CommonOptions",
    "Option",
    "at_least",
    "bad_option",
    "boolean",
    "duration_ms",
    "json_object",
    "names",
    "one_of",
    "option",
    "options_of",
    "positive",
    "read_options",
    "redacted",
    "text",
]

T = TypeVar("T")
Check = Callable[[str], T]
KAFKA: Final = "kafka."
HIDDEN: Final = "(hidden)"
_SECRET: Final = re.compile(r"password|secret|token|credential|jaas|^kafka\.sasl\.|keystore\.key")
_UNITS_MS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
}
_DURATION: Final = re.compile(r"(\d+)\s*([a-z]+)")


class Option(NamedTuple):
    """One option: the name that users write, and its check."""

    name: str
    check: Check[Any]
    default: object


def option(name: str, check: Check[T], default: T) -> T:
    """A field of a table of options."""
    line = Option(name, check, default)
    return field(default=default, metadata={"option": line})


def options_of(table: type) -> dict[str, Option]:
    """The options of a table by the name of their field."""
    return {each.name: each.metadata["option"] for each in fields(table) if "option" in each.metadata}


# --- checks -----------------------------------------------------------------------------------------------------------


def text(value: str) -> str:
    if not value.strip():
        raise ValueError("it is empty")
    return value.strip()


def boolean(value: str) -> bool:
    values = {"true": True, "false": False}
    if value.strip().lower() not in values:
        raise ValueError(f"{value!r} is neither true nor false")
    return values[value.strip().lower()]


def at_least(lowest: int) -> Check[int]:
    def check(value: str) -> int:
        number = _integer(value)
        if number is None or number < lowest:
            wanted = "a positive integer" if lowest == 1 else f"an integer of at least {lowest}"
            raise ValueError(f"{value!r} is not {wanted}")
        return number

    return check


positive: Final[Check[int]] = at_least(1)


def one_of(*choices: str) -> Check[str]:
    def check(value: str) -> str:
        if value.strip().lower() not in choices:
            raise ValueError(f"{value!r} is not one of {', '.join(choices)}")
        return value.strip().lower()

    return check


def names(value: str) -> tuple[str, ...]:
    """A list separated by commas."""
    found = tuple(word.strip() for word in value.split(",") if word.strip())
    if not found:
        raise ValueError("it is empty")
    return found


def duration_ms(value: str) -> int:
    """`15m`, `30 s`, `1 hour 30 minutes`; a bare number is milliseconds."""
    plain = value.strip().lower()
    if plain.isascii() and plain.isdigit():
        return int(plain)
    parts = _DURATION.findall(plain)
    units = [unit if unit in _UNITS_MS else unit.removesuffix("s") for _, unit in parts]
    if not parts or _DURATION.sub("", plain).strip() or any(unit not in _UNITS_MS for unit in units):
        raise ValueError(f"{value!r} is not a duration; write 15m or 30s")
    return sum(int(number) * _UNITS_MS[unit] for (number, _), unit in zip(parts, units, strict=True))


def json_object(value: str) -> dict[str, Any]:
    try:
        found = json.loads(value)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004  (the text is wrong, not a type of ours)
    return found


def _integer(value: str) -> int | None:
    try:
        return int(value.strip())
    except ValueError:
        return None


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CommonOptions:
    """The options of every format."""

    ignore_unknown_options: bool = option("ignoreUnknownOptions", boolean, False)

    def __post_init__(self) -> None:
        """Check combinations of options; each table also calls the checks of its bases."""


TableT = TypeVar("TableT", bound=CommonOptions)


def read_options(table: type[TableT], given: Mapping[str, str], *, other: Iterable[str] = ()) -> TableT:
    """The values of a format's options. `other` names options of Spark itself that are ignored.

    The field `kafka` of a table gets the options that begin with `kafka.`, under Kafka's own names.
    """
    lines = options_of(table)
    known = {line.name.lower(): name for name, line in lines.items()}
    passed_over = {name.lower() for name in other}
    values: dict[str, Any] = {}
    unknown: list[str] = []
    properties: dict[str, str] = {}
    for name, value in given.items():
        lower = name.lower()
        if lower in known:
            values[known[lower]] = _checked(lines[known[lower]], value)
        elif lower.startswith(KAFKA) and "kafka" in {each.name for each in fields(table)}:
            properties[lower.removeprefix(KAFKA)] = value
        elif lower not in passed_over:
            unknown.append(name)
    if unknown and not values.get("ignore_unknown_options"):
        raise _unknown(unknown[0], [line.name for line in lines.values()])
    if properties:
        values["kafka"] = properties
    return table(**values)


def bad_option(name: str, reason: str) -> OttlaSparkError:
    return OttlaSparkError(f"option {name}: {reason}")


def _checked(line: Option, value: str) -> object:
    try:
        return line.check(value)
    except ValueError as error:
        raise bad_option(line.name, str(error)) from None


def _unknown(name: str, known: list[str]) -> OttlaSparkError:
    by_lower = {each.lower(): each for each in known}
    nearest = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    advice = f"did you mean {by_lower[nearest[0]]}?" if nearest else f"known: {', '.join(sorted(known))}"
    return OttlaSparkError(f"unknown option {name}: {advice}")


def redacted(given: Mapping[str, str]) -> dict[str, str]:
    """The options without secrets, for output."""
    return {name: HIDDEN if _SECRET.search(name.lower()) else value for name, value in given.items()}
