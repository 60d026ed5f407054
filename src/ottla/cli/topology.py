"""`ottla streams topology`: draws the topology of a Kafka Streams application."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from ottla.cli.cluster import Target, on_cluster, target_options
from ottla.cli.failure import Failure

if TYPE_CHECKING:
    from ottla.client import Client
    from ottla.client.streams import Described
    from ottla.draw.graph import Graph
    from ottla.draw.topology import Topology

FORMATS = ("terminal", "svg", "json")
NAMES = ("full", "short")
BOX_LETTERS = "┌╔╭┏┿┊▼"
HOW_TO = "print Topology.describe() in the application, and pass the text with --from FILE"


@click.command()
@click.argument("group", required=False)
@click.option(
    "--from",
    "source",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="The text of Topology.describe(); - for standard input.",
)
@click.option("--format", "shape", type=click.Choice(FORMATS), help="By default that of --out, else terminal.")
@click.option("--svg", "shape", flag_value="svg", help="The same as --format svg.")
@click.option("--json", "shape", flag_value="json", help="The same as --format json.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="A file instead of standard output.")
@click.option("--width", type=click.IntRange(1), metavar="COLUMNS", help="By default the terminal's width.")
@click.option(
    "--names",
    type=click.Choice(NAMES),
    default=NAMES[0],
    help="short writes KSTREAM-AGGREGATE-0000000003 as aggregate 3. By default full.",
)
@click.option("--ascii", "ascii_only", is_flag=True, help="Use no box-drawing characters.")
@target_options
def topology(
    target: Target,
    group: str | None,
    source: IO[str] | None,
    shape: str | None,
    out: Path | None,
    width: int | None,
    names: str,
    ascii_only: bool,
) -> None:
    """Draw the topology of an application: subtopologies, processors, stores and topics.

    The topology comes from GROUP, on clusters that store descriptions (KIP-1331), or from the text of
    Topology.describe().
    """
    if (group is None) == (source is None):
        raise Failure("give either a GROUP or --from FILE", HOW_TO if group is None else "not both")
    found = _read(source) if source is not None else _ask(target, group or "")
    title = group or _title(source)
    shape = shape or _shape_of(out)
    if shape == "json":
        _write(_json(found), out)
    elif shape == "svg":
        _write(_svg(_graph(found, names), title), out)
    else:
        _write(_terminal(_graph(found, names), width, ascii_only, is_file=out is not None), out)


def _title(source: IO[str] | None) -> str:
    return "" if source is None or source is sys.stdin else Path(source.name).stem


def _shape_of(out: Path | None) -> str:
    ending = out.suffix.lower().lstrip(".") if out is not None else ""
    return ending if ending in FORMATS else FORMATS[0]


# --- where it comes from ----------------------------------------------------------------------------------------------


def _read(source: IO[str]) -> Topology:
    from ottla.draw.describe_text import DescribeTextError, parse_describe_text

    try:
        return parse_describe_text(source.read())
    except UnicodeDecodeError:
        raise Failure(f"{source.name} is not text in UTF-8") from None
    except DescribeTextError as error:
        raise Failure(f"{source.name}: {error}") from None


def _ask(target: Target, group: str) -> Topology:
    from ottla.draw.described import topology_of

    async def work(client: Client) -> Described:
        from ottla.client.streams import topology_description

        return await topology_description(client, group)

    found = on_cluster(target, work)
    if found.description is None:
        raise Failure(f"group {group}: {found.why_not}", HOW_TO)
    return topology_of(found.description)


# --- where it goes ----------------------------------------------------------------------------------------------------


def _graph(found: Topology, names: str) -> Graph:
    from ottla.draw.short_names import with_short_names
    from ottla.draw.topology import graph_of

    graph = graph_of(found)
    return with_short_names(graph) if names == "short" else graph


def _terminal(graph: Graph, width: int | None, ascii_only: bool, *, is_file: bool) -> str:
    from ottla.draw.terminal import terminal_text

    is_terminal = not is_file and sys.stdout.isatty()
    if width is None and is_terminal:
        width = shutil.get_terminal_size().columns
    plain = ascii_only or (not is_file and not _has_box_letters(sys.stdout.encoding))
    return terminal_text(graph, width=width, ascii_only=plain, colour=is_terminal)


def _has_box_letters(encoding: str | None) -> bool:
    try:
        BOX_LETTERS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _svg(graph: Graph, title: str) -> str:
    from ottla.draw.layout import layout
    from ottla.draw.svg import svg_text

    return svg_text(layout(graph), f"Topology of {title}" if title else "Topology")


def _json(found: Topology) -> str:
    from ottla.draw.as_json import topology_json

    return json.dumps(topology_json(found), indent=2, ensure_ascii=False) + "\n"


def _write(text: str, out: Path | None) -> None:
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(f"cannot write {out}: {error.strerror}") from None
