"""The colours of the pages can be read: contrast after WCAG 2.2, in light and dark."""

from __future__ import annotations

import pytest

from ottla.explain.render.html import own
from tests.unit.draw.colours import THEMES, Colour, contrast, mixed, tokens

TOKENS = tokens(own("page.css"))
READ = ("text", "muted", "link", "critical", "warning", "ok", "number", "string", "blob", "many")
HUES = tuple(f"h{number}" for number in range(8))
STRONG, FAINT = 0.20, 0.08


def colour(name: str, theme: str) -> Colour:
    return TOKENS[name][THEMES[theme]]


def test_contrast_is_measured_as_everywhere():
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    assert contrast(colour("text", "light"), colour("page", "light")) == pytest.approx(16.6, abs=0.05)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("ground", ["page", "panel", "raised"])
def test_text_can_be_read(name: str, ground: str, theme: str):
    assert contrast(colour(name, theme), colour(ground, theme)) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_chosen_things_can_be_read(theme: str):
    assert contrast(colour("page", theme), colour("accent", theme)) >= 4.5
    assert contrast(colour("text", theme), colour("mark", theme)) >= 4.5
    assert contrast(colour("text", theme), colour("accent-soft", theme)) >= 4.5
    assert contrast(colour("mark-line", theme), colour("panel", theme)) >= 3
    assert contrast(colour("focus", theme), colour("page", theme)) >= 3


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("hue", HUES)
def test_bytes_can_be_read_on_the_colour_of_their_field(hue: str, theme: str):
    panel = colour("panel", theme)
    assert contrast(colour("text", theme), mixed(colour(hue, theme), panel, STRONG)) >= 4.5
    assert contrast(colour("muted", theme), mixed(colour(hue, theme), panel, FAINT)) >= 4.5


def test_the_shares_of_colour_are_those_of_the_styles():
    styles = own("page.css")
    assert f"var(--h) {STRONG:.0%}, transparent" in styles
    assert f"var(--h) {FAINT:.0%}, transparent" in styles


def test_marks_in_the_diagram_can_be_read():
    for theme in THEMES:
        for name in ("muted", "ok", "warning"):
            ground = mixed(colour(name, theme), colour("raised", theme), 0.12)
            assert contrast(colour(name, theme), ground) >= 4.5, (theme, name)
