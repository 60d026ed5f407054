"""One page of Markdown as HTML, with the anchors of its headings, its links, and the words that the search finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from ottla.draw.markup import Markup, element, escaped
from ottla.explain.search_index import PageSection

_LEXERS = {"console": "console", "sh": "bash", "yaml": "yaml", "xml": "xml", "java": "java", "python": "python"} | {
    "properties": "properties",
    "json": "json",
    "toml": "toml",
    "diff": "diff",
    "sql": "sql",
}
_FORMATTER: HtmlFormatter[str] = HtmlFormatter(nowrap=True)


class Heading(NamedTuple):
    level: int
    anchor: str
    title: str


class Rendered(NamedTuple):
    title: str
    about: str
    """The first paragraph, as plain text."""
    html: Markup
    headings: list[Heading]
    sections: list[PageSection]


def anchor_of(title: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def plain(text: str) -> str:
    """Text as Markdown that shows it as it is; backticks keep their meaning."""
    return re.sub(r"([<*_\[])", r"\\\1", text)


def render(text: str, link: Callable[[str], str | None], code_link: Callable[[str], str | None]) -> Rendered:
    """`link` gives the address for the target of a link, `code_link` for a name in backticks; None leads nowhere."""
    parser = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False}).enable("table")
    for rule in ("fence", "code_block", "table_open", "table_close"):
        parser.add_render_rule(rule, globals()[f"_{rule}"])
    tokens = parser.parse(_without_comments(text))
    headings = _headings(tokens)
    for before, token in zip([None, *tokens[:-1]], tokens, strict=True):
        if token.children:
            is_heading = before is not None and before.type == "heading_open"
            token.children = list(_linked(token.children, link, (lambda _: None) if is_heading else code_link))
    paragraphs = (token for before, token in pairwise(tokens) if before.type == "paragraph_open")
    return Rendered(
        headings[0].title,
        _plain(next(paragraphs)),
        Markup(parser.renderer.render(tokens, parser.options, {})),
        headings,
        list(_sections(tokens, headings)),
    )


def _without_comments(text: str) -> str:
    """Comments in Markdown are for the tests of its blocks."""
    return re.sub(r"^<!--.*?-->\n", "", text, flags=re.MULTILINE | re.DOTALL)


def _headings(tokens: list[Token]) -> list[Heading]:
    found: list[Heading] = []
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            title = _plain(inline)
            anchor = anchor_of(title)
            repeated = sum(each.anchor == anchor for each in found)
            anchor = f"{anchor}-{repeated}" if repeated else anchor
            token.attrSet("id", anchor)
            found.append(Heading(int(token.tag[1]), anchor, title))
    return found


def _plain(inline: Token) -> str:
    children = inline.children or []
    return "".join(" " if each.type == "softbreak" else each.content for each in children if each.type != "image")


def _linked(
    tokens: list[Token], link: Callable[[str], str | None], code_link: Callable[[str], str | None]
) -> Iterator[Token]:
    """Links and pictures with the addresses that they have on the site; names in backticks lead to their pages."""
    inside: list[bool] = []
    for token in tokens:
        if token.type == "link_open":
            address = link(str(token.attrs["href"]))
            inside.append(address is not None)
            if address is None:
                continue
            token.attrs["href"] = address
        elif token.type == "link_close" and not inside.pop():
            continue
        elif token.type == "image":
            token.attrs["src"] = link(str(token.attrs["src"])) or ""
            token.attrs["loading"] = "lazy"
        elif token.type == "code_inline" and not inside and (address := code_link(token.content)):
            yield Token("link_open", "a", 1, attrs={"href": address})
            yield token
            yield Token("link_close", "a", -1)
            continue
        yield token


def _sections(tokens: list[Token], headings: list[Heading]) -> Iterator[PageSection]:
    """The words under each heading; the first section is the page itself."""
    texts: list[list[str]] = []
    for token in tokens:
        if token.type == "heading_open":
            texts.append([])
        elif token.type == "inline":
            texts[-1].append(_plain(token))
        elif token.type == "fence":
            texts[-1].append(token.content)
    for number, (heading, text) in enumerate(zip(headings, texts, strict=True)):
        yield PageSection(heading.anchor if number else "", heading.title, _words(" ".join(text)))


def _words(text: str) -> str:
    """Each word once, also the parts of words with hyphens, dots and underscores."""
    found = dict[str, None]()
    for word in re.findall(r"[a-z0-9][a-z0-9_-]*", text.lower()):
        found[re.sub(r"[_-]", "", word)] = None
        found |= dict.fromkeys(filter(None, re.split(r"[_-]", word)))
    return "".join(f" {word}" for word in found)


# --- what looks different here ----------------------------------------------------------------------------------------


def _fence(_self: object, tokens: list[Token], at: int, *_: object) -> str:
    return _code(tokens[at].content, tokens[at].info.partition(" ")[0])


def _code(text: str, language: str) -> str:
    lexer = _LEXERS.get(language)
    inner = Markup(highlight(text, get_lexer_by_name(lexer), _FORMATTER)) if lexer else escaped(text)
    return element("pre", element("code", inner), class_="code", tabindex="0") + "\n"


def _code_block(_self: object, tokens: list[Token], at: int, *_: object) -> str:
    return _code(tokens[at].content, "python")  # in docstrings


def _table_open(*_: object) -> str:
    return '<div class="wide" tabindex="0"><table>'


def _table_close(*_: object) -> str:
    return "</table></div>\n"
