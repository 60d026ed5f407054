"""The runs of pipelines: what each read and wrote, and its report."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import msgspec

from ottla.console.addresses import href
from ottla.console.html.parts import Column, command, facts, nothing, section, table
from ottla.console.page import Content, Degraded, NotFoundError, Page, PageContext, Source
from ottla.draw.forms import moment
from ottla.draw.markup import NOTHING, Markup, element, joined

__all__ = ["PAGE", "REPORT_POLICY", "report_of"]

RUN_FILE: Final = "run.json"
REPORT: Final = "report.html"
REPORT_POLICY: Final = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""A report has its scripts inside. In a sandbox they reach nothing of the console."""


class Input(msgspec.Struct, frozen=True):
    name: str
    where: str = ""
    rows: int = 0


class Table(msgspec.Struct, frozen=True):
    name: str
    rows: int | None = None
    format: str = ""


class Range(msgspec.Struct, frozen=True):
    from_ms: int | None = None
    to_ms: int | None = None


class RunFile(msgspec.Struct, frozen=True):
    """What the console reads of a run file; fields that it does not know are ignored."""

    run_id: str = ""
    ended_ms: int | None = None
    ottla: str = ""
    spark: str = ""
    clusters: list[str] = []
    range: Range = Range()
    inputs: list[Input] = []
    tables: list[Table] = []
    notes: list[str] = []
    command: str = ""


class Run(msgspec.Struct, frozen=True):
    name: str
    """The name of its directory, numbered if two have the same."""
    path: str
    run: RunFile
    has_report: bool


class Pipeline(msgspec.Struct, frozen=True):
    runs: list[Run]


async def load(context: PageContext) -> Content[Pipeline]:
    found, problems = await asyncio.to_thread(_runs, context.watcher.pipelines)
    newest = max((each.run.ended_ms or 0 for each in found), default=0)
    sources = [Source("run files", context.now_ms - newest)] if newest else []
    return Content(Pipeline(found), "Pipeline", sources, problems)


def _runs(directories: tuple[Path, ...]) -> tuple[list[Run], list[Degraded]]:
    found, problems = [], []
    for name, path in _named(directories).items():
        try:
            run = msgspec.json.decode((path / RUN_FILE).read_bytes(), type=RunFile)
        except FileNotFoundError:
            problems.append(Degraded(str(path), f"no finished run: {RUN_FILE} does not exist"))
        except (OSError, msgspec.DecodeError) as error:
            problems.append(Degraded(str(path), f"{RUN_FILE} cannot be read: {error}"))
        else:
            found.append(Run(name, str(path), run, (path / REPORT).exists()))
    return found, problems


def _named(directories: tuple[Path, ...]) -> dict[str, Path]:
    named: dict[str, Path] = {}
    for path in directories:
        name, number = path.absolute().name, 2
        while name in named:
            name, number = f"{path.absolute().name}-{number}", number + 1
        named[name] = path
    return named


def report_of(directories: tuple[Path, ...], name: str) -> bytes:
    """The report of a run. NotFoundError if it has none."""
    path = _named(directories).get(name)
    try:
        return (path / REPORT).read_bytes() if path is not None else _missing(name)
    except FileNotFoundError:
        return _missing(name)


def _missing(name: str) -> bytes:
    raise NotFoundError("report", name)


# --- the page ---------------------------------------------------------------------------------------------------------


def render(content: Content[Pipeline], context: PageContext) -> Markup:
    if not content.data.runs:
        told = (
            "No runs to show." if context.watcher.pipelines else "No pipeline directories were given to this console."
        )
        example = f"ottla console --bootstrap {context.watcher.bootstrap_servers} --pipeline out"
        return joined([nothing(told), element("p", "To add one: ", command(example))])
    return joined(_run(each) for each in content.data.runs)


def _run(each: Run) -> Markup:
    run = each.run
    report = element("a", "Report", href=href("pipeline", "report", each.name)) if each.has_report else "no report"
    told = facts(
        {
            "ended": moment(run.ended_ms),
            "from": moment(run.range.from_ms),
            "to": moment(run.range.to_ms),
            "clusters": ", ".join(run.clusters),
            "directory": each.path,
            "Spark": run.spark,
            "report": report,
        }
    )
    inputs = [(source.name, source.rows, source.where) for source in run.inputs]
    tables = [(made.name, made.rows, made.format) for made in run.tables]
    return section(
        each.name,
        told,
        element("p", command(run.command)) if run.command else NOTHING,
        table("Inputs", (Column("input"), Column("rows", is_number=True), Column("from")), inputs),
        table("Outputs", (Column("table"), Column("rows", is_number=True), Column("format")), tables),
        element("ul", *(element("li", note) for note in run.notes), class_="fine") if run.notes else NOTHING,
    )


PAGE: Final = Page("pipeline", "/pipeline", Pipeline, load, render, section="pipeline")
