"""From the text of a filter to what it does. Errors name the character at which the text goes wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ottla.client.filters import expressions
from ottla.client.filters.expressions import Filter, Row, Step

STEPS_MAX: Final = 10_000
TEXT_MAX: Final = 100_000
DEPTH_MAX: Final = 100
PATTERN_BYTES_MAX: Final = 1 << 20
_SHOWN_MAX: Final = 20
ROOTS: Final = ("key", "value", "headers", "topic", "partition", "offset", "timestamp", "size")
_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<text>"(?:[^"\\]|\\.)*"|'[^'\\]*')
      | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | (?P<word>[A-Za-z_][A-Za-z0-9_-]*)
      | (?P<sign>==|!=|<=|>=|<|>|=|~|\(|\)|\[|\]|,|\.)
    )""",
    re.VERBOSE | re.ASCII,
)
_WORDS: Final = {"true": True, "false": False, "null": None}
_COMPARISONS: Final = ("==", "!=", "<=", ">=", "<", ">")


class FilterError(ValueError):
    """A text that is no filter, with the place."""


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def compile_filter(text: str) -> Filter:
    """The filter that a text means. FilterError if it means none."""
    if len(text) > TEXT_MAX:
        raise FilterError(f"a filter has at most {TEXT_MAX} characters, and this one has {len(text)}")
    step = _Parser(list(_tokens(text)), len(text)).whole()

    def matches(row: Row) -> bool:
        return bool(step(row))

    return matches


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise FilterError(f"character {at + 1}, {text[at]!r}, is not valid in a filter")
        yield _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))
        at = match.end()


class _Parser:
    """Reads tokens from the left: or, and, not, comparison, operand, each in a method of its own."""

    def __init__(self, tokens: list[_Token], length: int) -> None:
        self._tokens = tokens
        self._length = length
        self._at = 0
        self._steps = 0
        self._depth = 0

    def whole(self) -> Step:
        step = self._or()
        if self._at < len(self._tokens):
            raise self._wrong("nothing more, 'and' or 'or'")
        return step

    def _or(self) -> Step:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise FilterError(f"a filter is at most {DEPTH_MAX} levels deep")
        steps = [self._and()]
        while self._takes("word", "or"):
            steps.append(self._step(self._and()))
        self._depth -= 1
        return expressions.any_of(steps) if len(steps) > 1 else steps[0]

    def _and(self) -> Step:
        steps = [self._not()]
        while self._takes("word", "and"):
            steps.append(self._step(self._not()))
        return expressions.all_of(steps) if len(steps) > 1 else steps[0]

    def _not(self) -> Step:
        is_negated = False
        while self._takes("word", "not"):
            is_negated = not is_negated
        step = self._comparison()
        return self._step(expressions.negated(step)) if is_negated else step

    def _comparison(self) -> Step:
        if self._takes("sign", "("):
            inner = self._or()
            self._expect(")")
            return inner
        left = self._operand()
        if self._takes("word", "in"):
            return self._step(expressions.one_of(left, self._list()))
        if self._takes("sign", "~"):
            return self._step(expressions.found(left, self._pattern()))
        if self._takes("sign", "="):
            return self._step(expressions.compared("==", left, self._operand()))
        for sign in _COMPARISONS:
            if self._takes("sign", sign):
                return self._step(expressions.compared(sign, left, self._operand()))
        return left

    def _list(self) -> list[Step]:
        self._expect("[")
        choices = [self._operand()]
        while self._takes("sign", ","):
            choices.append(self._operand())
        self._expect("]")
        return choices

    def _operand(self) -> Step:
        token = self._next()
        if token is not None and token.kind == "text":
            return self._step(expressions.constant(_unquoted(token)))
        if token is not None and token.kind == "number":
            return self._step(expressions.constant(_number(token)))
        if token is not None and token.kind == "word":
            if token.text in _WORDS:
                return self._step(expressions.constant(_WORDS[token.text]))
            if token.text in ROOTS:
                return self._step(expressions.path(token.text, self._rest_of_path()))
        self._at -= token is not None
        raise self._wrong(f"a text, a number or one of {', '.join(ROOTS)}")

    def _rest_of_path(self) -> list[str | int]:
        rest: list[str | int] = []
        while True:
            if self._takes("sign", "."):
                rest.append(self._name())
            elif self._takes("sign", "["):
                rest.append(self._subscript())
                self._expect("]")
            else:
                return rest

    def _name(self) -> str:
        token = self._next()
        if token is None or token.kind != "word":
            self._at -= token is not None
            raise self._wrong("the name of a field")
        return token.text

    def _subscript(self) -> str | int:
        token = self._next()
        if token is not None and token.kind == "text":
            return _unquoted(token)
        if token is not None and token.kind == "number" and token.text.isdecimal():
            return int(_number(token))
        self._at -= token is not None
        raise self._wrong("a name in quotes or a number")

    def _pattern(self) -> Callable[[str], object]:
        token = self._next()
        if token is None or token.kind != "text":
            self._at -= token is not None
            raise self._wrong("a regular expression in quotes")
        import re2

        options = re2.Options()
        options.log_errors = False
        options.max_mem = PATTERN_BYTES_MAX
        try:
            compiled = re2.compile(_unquoted(token), options)
        except (re2.error, UnicodeEncodeError) as error:
            raise FilterError(f"character {token.at + 1}: {token.text} is not a regular expression: {error}") from None
        # JSON can hold half a surrogate pair, which no text in UTF-8 can.
        return lambda text: compiled.search(text.encode(errors="replace"))

    # --- tokens

    def _step(self, step: Step) -> Step:
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise FilterError(f"a filter has at most {STEPS_MAX} steps")
        return step

    def _next(self) -> _Token | None:
        if self._at >= len(self._tokens):
            return None
        self._at += 1
        return self._tokens[self._at - 1]

    def _takes(self, kind: str, text: str) -> bool:
        is_there = self._at < len(self._tokens) and self._tokens[self._at][:2] == (kind, text)
        self._at += is_there
        return is_there

    def _expect(self, sign: str) -> None:
        if not self._takes("sign", sign):
            raise self._wrong(f"'{sign}'")

    def _wrong(self, wanted: str) -> FilterError:
        if self._at >= len(self._tokens):
            return FilterError(f"the filter ends after character {self._length}, where {wanted} was expected")
        token = self._tokens[self._at]
        return FilterError(f"character {token.at + 1}, {token.text!r}: {wanted} was expected")


def _number(token: _Token) -> int | float:
    try:
        number: int | float = json.loads(token.text)
    except ValueError:  # zeros before it, or thousands of digits
        shown = token.text[:_SHOWN_MAX]
        raise FilterError(f"character {token.at + 1}, {shown!r}, is not a valid number") from None
    return number


def _unquoted(token: _Token) -> str:
    if token.text[0] == "'":
        return token.text[1:-1]
    # Regular expressions are full of backslashes: one that JSON does not know stays as it is.
    body = re.sub(r'\\(?!["\\/bfnrtu])', r"\\\\", token.text)
    try:
        text = json.loads(body, strict=False)
    except ValueError:
        raise FilterError(f"character {token.at + 1}: {token.text} is not a valid text") from None
    return str(text)
