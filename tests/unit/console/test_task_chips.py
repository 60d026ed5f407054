"""Tasks as coloured chips: each has its member's letter and colour, and the legend says whose they are."""

from ottla.console.group_members import TaskMark
from ottla.console.html.task_matrix import task_chips
from ottla.console.task_colours import by_lag, by_member, by_process


def mark(task: str, member: str, role: str = "active", standing: str = "running") -> TaskMark:
    return TaskMark(task, member, role, standing)


def test_tasks_have_the_letter_and_the_colour_of_their_member():
    marks = [mark("0_1", "b"), mark("0_0", "a"), mark("1_0", "a", standing="leaving"), mark("1_0", "b", "standby")]
    members = [("a", "app <1>"), ("b", "app-2")]
    chips, legend = task_chips(marks, members, by_member(members))
    assert list(chips) == ["0", "1"]
    assert chips["0"].index("0_0 A") < chips["0"].index("0_1 B")
    assert 'class="chip task-active h0"' in chips["0"]
    assert 'class="chip task-leaving h0"' in chips["1"]
    assert 'class="chip task-standby h1"' in chips["1"]
    assert "app &lt;1&gt;" in legend


def test_letters_and_colours_go_on_after_the_last():
    members = [(str(number), f"m{number}") for number in range(30)]
    chips, legend = task_chips([mark("0_0", "27"), mark("0_1", "gone")], members, by_member(members))
    assert 'class="chip task-active h3"' in chips["0"]
    assert "0_0 B2" in chips["0"]
    assert "0_1 ?" in chips["0"]
    assert legend.count("<li>") == 30


def test_threads_of_one_process_have_one_colour():
    colours = by_process({"a": "p", "b": "q", "c": "p", "d": None})
    assert [colours.of(mark("0_0", member)).letter for member in "abcdx"] == ["A", "B", "A", "?", "?"]
    assert [each.words for each in colours.legend] == ["process p", "process q"]


def test_lag_has_five_steps():
    colours = by_lag({"0_0": 0, "0_1": 1, "0_2": 99, "0_3": 100, "0_4": 9_999, "0_5": 10_000, "0_6": 1_000_000})
    assert [colours.of(mark(f"0_{number}", "a")).letter for number in range(8)] == list("0112234?")
    assert colours.of(mark("0_4", "a"))[1:] == ("s2", "9,999 behind")
    assert len(colours.legend) == 5
