"""The short-hand in which scenarios write values: like YAML's flow style, with calls.

    {group_id: g, topics: [{name: t, partitions: [0, 1]}], metadata: subscription(t, u), reason: "two words"}

`parse` returns dicts, lists, texts, numbers, True, False, None and `Call`s; the field to which a text or a call goes
decides its meaning.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

__all__ = ["Call", "ShorthandError", "parse"]

_KEY: Final = re.compile(r"\s*([\w.-]+)\s*:")
_NAMED: Final = re.compile(r"\s*(\w+)\s*=")
_CALL: Final = re.compile(r"([a-z_]+)\(")
_BARE: Final = re.compile(r"[^,\[\]{}()\"]+")
_WORDS: Final = {"null": None, "true": True, "false": False}


class ShorthandError(ValueError):
    """A text that is not short-hand."""


class Call(NamedTuple):
    name: str
    positional: list[Any]
    named: dict[str, Any]


def parse(text: str) -> Any:  # noqa: ANN401
    """The value of a text."""
    reader = _Reader(text)
    value = reader.value()
    reader.space()
    if reader.at < len(text):
        raise ShorthandError(f"what is {text[reader.at :]!r} in {text!r}?")
    return value


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def space(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def peek(self) -> str:
        self.space()
        return self.text[self.at : self.at + 1]

    def take(self, expected: str) -> None:
        if self.peek() != expected:
            raise ShorthandError(f"{expected!r} is missing before {self.text[self.at :]!r}")
        self.at += 1

    def value(self) -> Any:  # noqa: ANN401
        first = self.peek()
        if first == "{":
            return self.pairs()
        if first == "[":
            return self.items("[", "]")
        if first == '"':
            return self.quoted()
        call = _CALL.match(self.text, self.at)
        return self.bare() if call is None else self.call(call)

    def pairs(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.take("{")
        while self.peek() != "}":
            key = _KEY.match(self.text, self.at)
            if key is None:
                raise ShorthandError(f"a field's name and a colon are missing before {self.text[self.at :]!r}")
            self.at = key.end()
            found[key[1]] = self.value()
            self.comma("}")
        self.take("}")
        return found

    def items(self, opening: str, closing: str) -> list[Any]:
        found = []
        self.take(opening)
        while self.peek() != closing:
            found.append(self.value())
            self.comma(closing)
        self.take(closing)
        return found

    def call(self, match: re.Match[str]) -> Call:
        self.at = match.end()
        positional: list[Any] = []
        named: dict[str, Any] = {}
        while self.peek() != ")":
            name = _NAMED.match(self.text, self.at)
            if name is not None:
                self.at = name.end()
                named[name[1]] = self.value()
            else:
                positional.append(self.value())
            self.comma(")")
        self.take(")")
        return Call(match[1], positional, named)

    def comma(self, closing: str) -> None:
        if self.peek() != closing:
            self.take(",")

    def quoted(self) -> str:
        end = self.text.find('"', self.at + 1)
        if end < 0:
            raise ShorthandError(f"the quote is not closed: {self.text[self.at :]}")
        text = self.text[self.at + 1 : end]
        self.at = end + 1
        return text

    def bare(self) -> Any:  # noqa: ANN401
        match = _BARE.match(self.text, self.at)
        if match is None:
            raise ShorthandError(f"a value is missing before {self.text[self.at :]!r}")
        self.at = match.end()
        word = match[0].strip()
        if word in _WORDS:
            return _WORDS[word]
        return int(word) if re.fullmatch(r"-?\d+", word) else word
