"""`ottla explain`: shows the page of a message, a record type, an error or a setting."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

import click

from ottla.cli import colour
from ottla.cli.failure import Failure

if TYPE_CHECKING:
    from rich.console import Console

    from ottla.explain import Page, PageRef

FORMATS = ("json", "html", "markdown")
_NEGATIVE = re.compile(r"-\d+")


class ExplainCommand(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """In `error -1` the number is no option."""
        pairs = zip_longest(args, args[1:], fillvalue="")
        words = ["--error" if word == "error" and _NEGATIVE.fullmatch(after) else word for word, after in pairs]
        return super().parse_args(ctx, words)


@click.command(cls=ExplainCommand)
@click.argument("words", metavar="[NAME [VERSION] [request|response]]", nargs=-1)
@click.option("--error", "error", metavar="NAME|CODE", help="Explain an error by its name or code.")
@click.option("--list", "is_list", is_flag=True, help="List all pages, like `ottla explain` alone.")
@click.option("--json", "form", flag_value="json", help="Print the pages as the rows of a JSON object.")
@click.option("--html", "form", flag_value="html", help="The page as one self-contained HTML file.")
@click.option("--markdown", "form", flag_value="markdown", help="The page as Markdown.")
@click.option("--width", type=click.IntRange(min=40), help="Columns to use instead of the terminal's width.")
def explain(words: tuple[str, ...], error: str | None, is_list: bool, form: str | None, width: int | None) -> None:
    """Explain a message, a record type or an error, down to its bytes, or a setting.

    NAME is Kafka's, case-insensitive: ShareFetch, ShareFetchRequest, StreamsGroupMetadataValue,
    FENCED_MEMBER_EPOCH, or an API key such as 78. The default VERSION is the highest stable one; by default both
    request and response are shown. NAME may also be a setting of brokers, topics, groups or client metrics;
    `ottla explain config --list` lists all settings.

    \b
    ottla explain StreamsGroupHeartbeat 0 response
    ottla explain ShareFetch 2
    ottla explain error 110
    ottla explain share.record.lock.duration.ms
    """
    if words[:1] == ("config",) and error is None:
        from ottla.cli.explain_config import explain_config

        explain_config(words[1:], form, is_list=is_list)
        return
    from ottla.explain import NotFound

    try:
        if error is None and (is_list or not words):
            _show_catalogue(form, width)
        else:
            _show(_refs(words, error), form, width)
    except NotFound as refusal:
        if error is None and _are_settings(words):
            from ottla.cli.explain_config import explain_config

            explain_config(words, form, is_list=False)
            return
        raise Failure(refusal.problem, refusal.advice) from None


def _are_settings(words: Sequence[str]) -> bool:
    """Whether these are names of settings, or look like misspelt ones."""
    from ottla.cli.explain_config import is_setting

    return all(is_setting(word) for word in words) or (len(words) == 1 and "." in words[0])


def _refs(words: Sequence[str], error: str | None) -> tuple[PageRef, ...]:
    from ottla.explain import find, find_error

    if error is None:
        return find(words)
    if words:
        raise Failure(f"'{' '.join(words)}' and --error cannot both be given", "give one of them")
    return (find_error(error),)


def _show(refs: Sequence[PageRef], form: str | None, width: int | None) -> None:
    from ottla.explain import build

    pages = [build(ref) for ref in refs]
    if form is None:
        from ottla.explain.render.terminal import print_page

        console = _console(width)
        for page in pages:
            print_page(page, console)
    else:
        click.echo(_rendered(pages, form), nl=False)


def _rendered(pages: Sequence[Page], form: str) -> str:
    if form == "json":
        from ottla.explain.render import json

        return json.render(pages) + "\n"
    if form == "html":
        from ottla.explain.render import html

        return html.render_all(pages)
    from ottla.explain.render import markdown

    return "\n".join(markdown.render(page) for page in pages)


def _show_catalogue(form: str | None, width: int | None) -> None:
    from ottla.explain import catalogue

    sections = catalogue()
    if form == "json":
        from ottla.explain.render import json

        click.echo(json.catalogue(sections))
    elif form == "markdown":
        from ottla.explain.render import markdown

        click.echo(markdown.catalogue(sections), nl=False)
    elif form == "html":
        raise Failure("the list of pages is not available as HTML", "`ottla docs build` makes a site of all pages")
    else:
        from ottla.explain.render.terminal import catalogue_lines, print_lines

        console = _console(width)
        print_lines(catalogue_lines(sections, console.width), console)


def _console(width: int | None) -> Console:
    """Colours on a terminal unless NO_COLOR says otherwise; the width of the terminal, or 100 where there is none."""
    from ottla.explain.render.terminal import WIDTH_DEFAULT

    console = colour.console()
    if width is None and not console.is_terminal:
        width = WIDTH_DEFAULT
    if width is not None:
        console.width = width
    return console
