"""Tasks of a streams group by member: a table with a mark where a member has a task, or is to have it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.console.group_members import TaskMark, task_order
from ottla.console.html.parts import Column, table
from ottla.console.task_colours import TaskColours
from ottla.draw.markup import Markup, element, joined

__all__ = ["task_chips", "task_matrix"]

TASKS_MAX: Final = 120
"""More columns than that nobody reads; the JSON has them all."""
NONE: Final = element("span", class_="task-none")


class Look(NamedTuple):
    """How a mark looks: a letter and a pattern, so that nothing depends on colour."""

    letter: str
    name: str


RUNNING: Final = {"active": Look("A", "active"), "standby": Look("S", "standby"), "warmup": Look("W", "warm-up")}
LEAVING: Final = Look("L", "leaving")
WAITING: Final = Look("…", "waiting")


def task_matrix(marks: Sequence[TaskMark], members: Sequence[tuple[str, str]]) -> Markup:
    """`members` are ids and names, one row each."""
    tasks = sorted({each.task for each in marks}, key=task_order)
    shown = tasks[:TASKS_MAX]
    cells: dict[tuple[str, str], list[TaskMark]] = {}
    for each in marks:
        cells.setdefault((each.member, each.task), []).append(each)
    rows = ((name, *(_cell(cells.get((member, task), ())) for task in shown)) for member, name in members)
    note = f"the first {len(shown)} of {len(tasks):,}; the JSON has all" if len(shown) < len(tasks) else ""
    columns = [Column("member"), *(Column(each) for each in shown)]
    return joined([element("div", table("Tasks by member", columns, rows, note), class_="matrix"), _legend()])


def task_chips(
    marks: Sequence[TaskMark], members: Sequence[tuple[str, str]], colours: TaskColours
) -> tuple[dict[str, Markup], Markup]:
    """The tasks of each subtopology with their colours, and what these mean."""
    names = dict(members)
    chips: dict[str, list[Markup]] = {}
    for each in sorted(marks, key=lambda mark: task_order(mark.task)):
        tone = colours.of(each)
        title = f"{each.task} {each.role}, {each.standing}: {names.get(each.member, each.member)} ({tone.words})"
        kind = f"chip task-{look_of(each).name} {tone.hue}".rstrip()
        chip = element("span", f"{each.task} {tone.letter}", class_=kind, title=title)
        chips.setdefault(each.task.rpartition("_")[0], []).append(chip)
    legend = (
        element("li", element("span", tone.letter, class_=f"chip {tone.hue}"), " ", tone.words)
        for tone in colours.legend
    )
    return {part: joined(found, " ") for part, found in chips.items()}, element("ul", *legend, class_="legend")


def _cell(marks: Iterable[TaskMark]) -> Markup:
    found = [_mark(look_of(each), f"{each.task} {each.role}, {each.standing}") for each in marks]
    return joined(found) if found else NONE


def look_of(mark: TaskMark) -> Look:
    return {"leaving": LEAVING, "waiting": WAITING}.get(mark.standing) or RUNNING[mark.role]


def _mark(look: Look, title: str) -> Markup:
    return element("span", look.letter, class_=f"task task-{look.name}", title=title)


def _legend() -> Markup:
    looks = (*RUNNING.values(), LEAVING, WAITING)
    return element("ul", *(element("li", _mark(each, each.name), " ", each.name) for each in looks), class_="legend")
