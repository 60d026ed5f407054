"""Tasks as coloured chips: each has its member's letter and colour, and the legend says whose they are."""

from ottla.console.group_members import TaskMark
from ottla.console.html.task_matrix import task_chips


def mark(task: str, member: str, role: str = "active", standing: str = "running") -> TaskMark:
    return TaskMark(task, member, role, standing)


def test_tasks_have_the_letter_and_the_colour_of_their_member():
    marks = [mark("0_1", "b"), mark("0_0", "a"), mark("1_0", "a", standing="leaving"), mark("1_0", "b", "standby")]
    chips, legend = task_chips(marks, [("a", "app <1>"), ("b", "app-2")])
    assert list(chips) == ["0", "1"]
    assert chips["0"].index("0_0 A") < chips["0"].index("0_1 B")
    assert 'class="chip task-active h0"' in chips["0"]
    assert 'class="chip task-leaving h0"' in chips["1"]
    assert 'class="chip task-standby h1"' in chips["1"]
    assert "app &lt;1&gt;" in legend


def test_letters_and_colours_go_on_after_the_last():
    members = [(str(number), f"m{number}") for number in range(30)]
    chips, legend = task_chips([mark("0_0", "27"), mark("0_1", "gone")], members)
    assert 'class="chip task-active h3"' in chips["0"]
    assert "0_0 B2" in chips["0"]
    assert "0_1 ?" in chips["0"]
    assert legend.count("<li>") == 30
