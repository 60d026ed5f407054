"""The command line as pages: one for each command, with all below it, from the help that it prints itself."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache

import click

from ottla.cli import GROUP
from tools.docs_site.markdown import anchor_of, plain


@cache
def pages() -> dict[str, str]:
    """Path of a page -> its Markdown."""
    context = click.Context(GROUP, info_name="ottla")
    found = {}
    for name in GROUP.list_commands(context):
        command = GROUP.get_command(context, name)
        assert command is not None
        found[_path(name)] = "\n\n".join(_told(command, context, "#"))
    return found


@cache
def anchors() -> dict[str, tuple[str, str]]:
    """A command, as it is typed -> its page and anchor."""
    titles = [
        line.lstrip("# ") for text in pages().values() for line in text.splitlines() if line.startswith(("# ", "## "))
    ]
    return {title: (_path(title.split()[1]), anchor_of(title)) for title in titles}


def _path(name: str) -> str:
    return f"reference/cli/{name}.md"


def _told(command: click.Command, above: click.Context, mark: str) -> Iterator[str]:
    context = click.Context(command, parent=above, info_name=command.name)
    yield f"{mark} {context.command_path}"
    yield from _help(command)
    if not isinstance(command, click.Group):
        yield f"```\n{command.get_usage(context).removeprefix('Usage: ')}\n```"
    rows = [record for param in command.get_params(context) if (record := param.get_help_record(context))]
    rows = [(names, text) for names, text in rows if text and names != "--help"]
    if rows:
        lines = [f"| `{_cell(names)}` | {plain(_cell(text))} |" for names, text in rows]
        yield "\n".join(["| option | meaning |", "|---|---|", *lines])
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _told(below, context, "##")


def _help(command: click.Command) -> Iterator[str]:
    """The paragraphs of a help text; one that begins with \\b keeps its lines."""
    for paragraph in inspect.cleandoc(command.help or "").split("\f")[0].split("\n\n"):
        kept = paragraph.removeprefix("\b\n")
        yield f"```\n{kept}\n```" if kept != paragraph else plain(paragraph)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
