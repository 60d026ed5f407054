"""Which exchanges to show: by API, client id, group and topic.

Values of one option are alternatives, different options must all hold. Client ids, groups and topics may have the wild
cards * and ?; APIs go by name in any case, with or without Request or Response, or by key.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import NamedTuple

from ottla.explain.exchanges import Exchange
from ottla.explain.facts import Facts
from ottla.wire.frames import api_names

__all__ = ["Filters", "UnknownApi", "make_filters"]


class UnknownApi(LookupError):
    """No API has this name or key; `nearest` is one that exists."""

    def __init__(self, word: str, nearest: str) -> None:
        super().__init__(f"unknown API '{word}'")
        self.word = word
        self.nearest = nearest


class Filters(NamedTuple):
    """The filters; an empty one admits everything."""

    apis: frozenset[str] = frozenset()
    client_ids: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not any(self)

    def admits_api(self, exchange: Exchange) -> bool:
        """The filters that do not need the facts."""
        first = exchange.first
        return self.admits_client(first.api, first.client_id or "")

    def admits_client(self, api: str, client_id: str) -> bool:
        """Whether what a client asks of an API is shown; groups and topics are not looked at."""
        if self.apis and api not in self.apis:
            return False
        return not self.client_ids or _matches(self.client_ids, [client_id])

    def admits(self, exchange: Exchange, facts: Facts) -> bool:
        if not self.admits_api(exchange):
            return False
        if self.groups and not _matches(self.groups, facts.groups):
            return False
        return not self.topics or _matches(self.topics, facts.topics)


def make_filters(
    apis: Iterable[str] = (), client_ids: Iterable[str] = (), groups: Iterable[str] = (), topics: Iterable[str] = ()
) -> Filters:
    """Filters from the words of a command line. Raises UnknownApi."""
    return Filters(frozenset(map(api_named, apis)), tuple(client_ids), tuple(groups), tuple(topics))


def api_named(word: str) -> str:
    """The API of a name or key. Raises UnknownApi."""
    known = api_names()
    by_key = next((name for key, name in known.items() if str(key) == word), None)
    if by_key is not None:
        return by_key
    folded = {_folded(name): name for name in known.values()}
    name = folded.get(_folded(word)) or folded.get(_folded(word).removesuffix("request").removesuffix("response"))
    if name is None:
        near = get_close_matches(_folded(word), folded, n=1, cutoff=0.0)[0]
        raise UnknownApi(word, folded[near])
    return name


def _folded(word: str) -> str:
    return word.lower().replace("_", "").replace("-", "")


def _matches(patterns: Iterable[str], names: Iterable[str]) -> bool:
    names = tuple(names)
    return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)
