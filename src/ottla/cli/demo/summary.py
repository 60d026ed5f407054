"""The end of the demo on the terminal: the findings, and whether they match what happened."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ottla.cli.demo.directory import DemoDirectory
from ottla.cli.demo.expected import Expectation
from ottla.cli.demo.ledger import Account

__all__ = ["show_accounts", "show_expectations", "show_findings", "show_next"]

MARKS: Final = {"critical": ("▲", "red"), "warning": ("●", "yellow"), "notice": ("○", "blue")}
PLAIN: Final = {"critical": "!!", "warning": "!", "notice": "i"}


def show_findings(console: Console, findings: Sequence[Mapping[str, Any]]) -> None:
    """The findings, ordered by time."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False)
    for heading in ("", "SINCE", "LASTED", "STATE", "WHAT"):
        table.add_column(heading, overflow="fold")
    for each in sorted(findings, key=lambda finding: finding["since_ms"]):
        mark, colour = MARKS[each["severity"]]
        if console.options.ascii_only:
            mark = PLAIN[each["severity"]]
        table.add_row(Text(mark, colour), _clock(each["since_ms"]), _lasted(each), each["state"], each["sentence"])
    console.print(table)
    marks = PLAIN if console.options.ascii_only else {severity: mark for severity, (mark, _) in MARKS.items()}
    console.print(Text("   ".join(f"{mark} {severity}" for severity, mark in marks.items()), "dim"))


def show_next(console: Console, directory: DemoDirectory) -> None:
    """Where the report is, and what to try next. Paths are absolute, so that they can be pasted anywhere."""
    report = directory.report_html.resolve()
    opener = {"darwin": "open", "win32": "start"}.get(sys.platform, "xdg-open")
    steps = {
        f"{opener} {report}": "opens the report",
        "ottla demo --stay": "leaves the nodes running, with a console in the browser",
        f"ottla storage check {(directory.data / 'node-1' / 'data').resolve()}": "checks the files of a node",
    }
    console.print(f"report {report}", soft_wrap=True)
    for command, what in steps.items():
        console.print(Text.assemble("  ", (command, "bold"), f"  {what}"), soft_wrap=True)


def _clock(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%H:%M:%S")


def _lasted(finding: Mapping[str, Any]) -> str:
    if not finding.get("until_ms"):
        return "–"
    return f"{max(0, finding['until_ms'] - finding['since_ms']) / 1000:.0f} s"


def show_accounts(console: Console, accounts: Iterable[Account]) -> bool:
    """Show the accounts; returns whether all of them are balanced."""
    balanced = True
    for each in accounts:
        if each.is_balanced:
            given_up = each.written - each.done
            more = f", {given_up} archived as poison" if given_up > 0 else ""
            text = f"{each.group}: all {each.written:,} records of {each.topic} accounted for{more}"
            console.print(Text(f"       {text}"), soft_wrap=True)
        else:
            balanced = False
            console.print(Text(f"       {each.group}, {each.topic}: {'; '.join(each.wrong)}", "red"), soft_wrap=True)
    return balanced


def show_expectations(console: Console, checked: Sequence[Expectation]) -> bool:
    held = sum(each.holds for each in checked)
    style = "green" if held == len(checked) else "bold red"
    console.print(Text(f"expectations met: {held} of {len(checked)}", style), soft_wrap=True)
    for each in checked:
        if not each.holds:
            console.print(Text(f"  not met: {each.what}; found: {each.seen}", "red"), soft_wrap=True)
    return held == len(checked)
