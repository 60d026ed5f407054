"""Drawings in a terminal, looked at letter by letter."""

import pytest

from ottla.draw.canvas import LIGHT, Canvas
from ottla.draw.terminal import terminal_text
from ottla.draw.text import broken, cells
from tests.unit.draw.pictures import NAMES, graph, plain

FORK = """\
         ┌ processor ──┐
         │      a      │
         └──────┬──────┘
             ┌──┴──┐
             ▼     ▼
┌ processor ──┐   ┌ processor ──┐
│      b      │   │      c      │
└─────────────┘   └─────────────┘
"""
FORK_IN_ASCII = """\
         + processor --+
         |      a      |
         +------+------+
             +--+--+
             v     v
+ processor --+   + processor --+
|      b      |   |      c      |
+-------------+   +-------------+
"""
NARROW = """\
subtopology 0
  source read, then ◀ in
  ├─ processor count (stores: [none])
  │  ├─ sink --> <script>"&' ▶ out
  │  └─ processor none
  └─ processor größer als 数える
     ↑ sink --> <script>"&'
"""


def test_a_fork():
    assert terminal_text(plain("a>b", "a>c")) == FORK
    assert terminal_text(plain("a>b", "a>c"), ascii_only=True) == FORK_IN_ASCII


def test_a_line_back_shows_that_it_climbs():
    rows = terminal_text(plain("a>b", "b>a")).splitlines()
    assert sum(row.count("▲") for row in rows) == 1
    assert sum(row.count("▼") for row in rows) == 2


def test_what_does_not_fit_is_an_outline():
    assert terminal_text(graph("strange-names"), width=40) == NARROW


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [80, 120, 200])
def test_boxes_are_never_wider_than_the_terminal(name: str, width: int):
    text = terminal_text(graph(name), width=width)
    if "┌" in text:
        assert max(map(cells, text.splitlines())) <= width


def test_names_are_broken_before_boxes_are_given_up():
    text = terminal_text(graph("word-count"), width=42)
    assert "┌" in text
    assert max(map(cells, text.splitlines())) <= 42


def test_colours_are_switched_off_at_the_end_of_each_row():
    coloured = terminal_text(graph("shop"), colour=True)
    assert "\x1b[36m" in coloured
    for row in coloured.splitlines():
        assert row.rfind("\x1b[0m") >= row.rfind("\x1b[")


def test_nothing_in_a_name_reaches_the_terminal_as_a_command():
    text = terminal_text(plain("\x1b[2J>b\ta\rd"))
    assert "\x1b" not in text
    assert "\r" not in text


def test_an_empty_topology_says_so():
    assert terminal_text(graph("empty")) == "(the topology is empty)\n"


def test_lines_of_different_nets_pass_each_other():
    canvas = Canvas(5, 3)
    canvas.line([(0, 1), (4, 1)], "level", LIGHT)
    canvas.line([(2, 0), (2, 2)], "upright", LIGHT)
    canvas.ink()
    assert canvas.rows(colour=False) == ["  │", "──│──", "  │"]


def test_lines_of_one_net_join():
    canvas = Canvas(5, 3)
    canvas.line([(0, 1), (4, 1)], "one", LIGHT)
    canvas.line([(2, 1), (2, 2)], "one", LIGHT)
    canvas.ink()
    assert canvas.rows(colour=False) == ["", "──┬──", "  │"]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("KSTREAM-MAP-0000000001", 30, ("KSTREAM-MAP-0000000001",)),
        ("KSTREAM-MAP-0000000001", 12, ("KSTREAM-MAP-", "0000000001")),
        ("abcdefgh", 3, ("abc", "def", "gh")),
        ("a longer name", 8, ("a longer", "name")),
        ("数える", 4, ("数え", "る")),
        ("   ", 4, (" ",)),
        ("数数", 1, ("数", "数")),
        ("KSTREAM-OUTERSHARED-0000000004-store", 34, ("KSTREAM-OUTERSHARED-", "0000000004-store")),
    ],
)
def test_names_are_broken_where_they_have_joints(text: str, width: int, lines: tuple[str, ...]):
    assert broken(text, width) == lines
