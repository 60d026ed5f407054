"""Finds pages by the words that a user types, and lists all pages.

`ottla explain` takes names in any case, with or without Request and Response, record names with or without Key and
Value, API keys, error names and the names of Java's exceptions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import cache

from ottla.explain.assemble import default_version
from ottla.explain.conversation import summary
from ottla.explain.page import CatalogueRow, CatalogueSection, PageRef
from ottla.explain.prose import message_of, ref_of
from ottla.wire.errors import ErrorCode
from ottla.wire.frames import api_names
from ottla.wire.index import MESSAGES

PARTS = ("request", "response")
ERROR_WORD = "error"
DIGITS_MAX = 9
"""Of versions, and of keys of APIs and errors."""
FAMILY_TITLES = {
    "headers": "Headers",
    "cluster_metadata": "Records of __cluster_metadata",
    "group_classic": "Records of __consumer_offsets: committed offsets and classic groups",
    "group_consumer": "Records of __consumer_offsets: consumer groups",
    "group_share": "Records of __consumer_offsets: share groups",
    "group_streams": "Records of __consumer_offsets: streams groups",
    "share_state": "Records of __share_group_state",
    "transaction_log": "Records of __transaction_state",
    "remote_log": "Records of __remote_log_metadata",
    "control_records": "Control records",
    "consumer_protocol": "Inside classic groups' requests",
    "streams_subscription": "Inside classic Streams groups' requests",
    "principal": "Inside forwarded requests",
    "quorum_state": "Files of the quorum",
    "storage": "Files of the log",
}


class NotFound(LookupError):
    """There is no page for these words; has the reason, and the nearest name that exists."""

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(f"{problem}; {advice}" if advice else problem)
        self.problem = problem
        self.advice = advice


def find(words: Sequence[str]) -> tuple[PageRef, ...]:
    """The pages that `NAME [VERSION] [request|response]` or `error NAME` mean, in the order to show them."""
    if words[0].lower() == ERROR_WORD and len(words) > 1:
        if len(words) > 2:
            raise NotFound(f"'{' '.join(words[2:])}' is not allowed after an error", "an error has one page")
        return (find_error(words[1]),)
    version, part = _options(words[1:])
    found = _find_messages(words[0])
    if not found:
        if error := _errors_by_word().get(_folded(words[0])):
            return (_error_alone(error, words[1:]),)
        raise NotFound(f"unknown name '{words[0]}'", _nearest(words[0]))
    return tuple(_chosen(found, version, part))


def find_error(word: str) -> PageRef:
    """The page of an error by name, by the name of Java's exception or by code."""
    if _is_number(word):
        try:
            return PageRef("error", ErrorCode(int(word)).name)
        except ValueError:
            codes = f"codes go from {min(ErrorCode):d} to {max(ErrorCode):d}"
            raise NotFound(f"no Kafka error has the code {word}", codes) from None
    name = _errors_by_word().get(_folded(word))
    if name is None:
        near = get_close_matches(word.upper(), ErrorCode.__members__, n=1, cutoff=0.0)[0]
        raise NotFound(f"unknown Kafka error '{word}'", f"did you mean {near}?")
    return PageRef("error", name)


def _error_alone(name: str, rest: Sequence[str]) -> PageRef:
    if rest:
        raise NotFound(f"{name} is an error and has neither versions nor parts", f"omit '{' '.join(rest)}'")
    return PageRef("error", name)


def _options(words: Sequence[str]) -> tuple[int | None, str | None]:
    """Version and part, in any order."""
    version = part = None
    for word in words:
        if _is_number(word.removeprefix("v")) and version is None:
            version = int(word.removeprefix("v"))
        elif word.lower() in PARTS and part is None:
            part = word.lower()
        else:
            near = get_close_matches(word.lower(), PARTS, n=1)
            advice = f"did you mean {near[0]}?" if near else "a version is a number, a part is request or response"
            raise NotFound(f"'{word}' is neither a version nor a part", advice)
    return version, part


def _find_messages(word: str) -> tuple[str, ...]:
    """Kafka's names of the messages that a word means."""
    if _is_number(word):
        return _by_api_key(int(word))
    return _messages_by_word().get(_folded(word), ())


def _by_api_key(key: int) -> tuple[str, ...]:
    api = api_names().get(key)
    if api is None:
        near = min(api_names(), key=lambda known: abs(known - key))
        raise NotFound(f"no API has the key {key}", f"the nearest is {near} ({api_names()[near]}); errors need --error")
    return (f"{api}Request", f"{api}Response")


def _chosen(names: Sequence[str], version: int | None, part: str | None) -> Iterator[PageRef]:
    if part is not None:
        kept = [name for name in names if MESSAGES[name].kind == part]
        if not kept:
            raise _no_such_part(names[0], part)
        names = kept
    for name in names:
        yield ref_of(name, _checked(name, version))


def _no_such_part(name: str, part: str) -> NotFound:
    kind = MESSAGES[name].kind
    if kind in PARTS:
        api = name.removesuffix(kind.capitalize())
        return NotFound(f"{name} is a {kind} and has no {part}", f"use {api} {part}")
    return NotFound(f"{name} is not an API and has no {part}", f"omit '{part}'")


def _checked(name: str, version: int | None) -> int:
    entry = MESSAGES[name]
    if version is None:
        return default_version(name)
    if not entry.low <= version <= entry.high:
        near = min(max(version, entry.low), entry.high)
        span = f"{entry.low} to {entry.high}" if entry.low < entry.high else f"{entry.low} only"
        raise NotFound(f"{name} has no version {version}", f"it has {span}, so the nearest is {near}")
    return version


def _nearest(word: str) -> str:
    errors = tuple(ErrorCode.__members__)
    names = {_folded(name): name for name in (errors if "_" in word else (*api_names().values(), *MESSAGES, *errors))}
    near = get_close_matches(_folded(word), names, n=1)
    return f"did you mean {names[near[0]]}?" if near else "'ottla explain' lists all names"


def _is_number(word: str) -> bool:
    digits = word.removeprefix("-")
    return digits.isdecimal() and len(digits) <= DIGITS_MAX


def _folded(word: str) -> str:
    """Names are compared without case, underscores and dashes."""
    return word.lower().replace("_", "").replace("-", "")


@cache
def _messages_by_word() -> dict[str, tuple[str, ...]]:
    """Folded name -> messages. A stem (ShareFetch, StreamsGroupMetadata) means both of its halves."""
    found: dict[str, tuple[str, ...]] = {}
    for name, entry in MESSAGES.items():
        stem = _stem(name, entry.kind)
        if stem is not None:
            found[_folded(stem)] = (*found.get(_folded(stem), ()), name)
    # A full name takes precedence over a stem with the same spelling.
    return found | {_folded(name): (name,) for name in MESSAGES}


def _stem(name: str, kind: str) -> str | None:
    ends = {"request": "Request", "response": "Response", "coordinator-key": "Key", "coordinator-value": "Value"}
    return name.removesuffix(ends[kind]) if kind in ends else None


@cache
def _errors_by_word() -> dict[str, str]:
    by_exception = {_folded(error.exception): error.name for error in ErrorCode if error.exception}
    return by_exception | {_folded(error.name): error.name for error in ErrorCode}


def all_refs() -> Iterator[PageRef]:
    """Every page there is: each version of each message, then the errors."""
    for name, entry in MESSAGES.items():
        for version in range(entry.low, entry.high + 1):
            yield ref_of(name, version)
    for error in ErrorCode:
        yield PageRef("error", error.name)


def catalogue() -> tuple[CatalogueSection, ...]:
    """The list of all pages: APIs by key, records by the topic or file that holds them, errors by code."""
    families: dict[str, list[str]] = {family: [] for family in FAMILY_TITLES}
    for name, entry in MESSAGES.items():
        if entry.kind not in PARTS:
            families[entry.file].append(name)
    apis = [_row(f"{api}Request", api) for _, api in sorted(api_names().items())]
    sections = [CatalogueSection("APIs", tuple(apis))]
    sections += [
        CatalogueSection(FAMILY_TITLES[family], tuple(_row(name, name) for name in names))
        for family, names in families.items()
    ]
    errors = [
        CatalogueRow(PageRef("error", error.name), error.value, error.name, (), error.meaning) for error in ErrorCode
    ]
    return (*sections, CatalogueSection("Errors", tuple(errors)))


def _row(name: str, shown: str) -> CatalogueRow:
    entry = MESSAGES[name]
    ref = PageRef("api", shown) if entry.kind == "request" else ref_of(name)
    assert message_of(ref) == name
    return CatalogueRow(ref, entry.key, shown, tuple(range(entry.low, entry.high + 1)), summary(name))
