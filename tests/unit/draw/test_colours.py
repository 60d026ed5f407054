"""The colours that all pages share: text can be read, and hues can be told apart by all eyes."""

from __future__ import annotations

from itertools import combinations

import pytest

from ottla.draw.document import shared
from tests.unit.draw.colours import EYES, THEMES, contrast, distance, lab, parsed, tokens

TOKENS = tokens(shared("ground.css"))
FIGURES = {
    "text": ((16.6, 15.3), (15.0, 13.4)),
    "muted": ((6.4, 5.9), (8.0, 7.1)),
    "link": ((6.7, 6.2), (8.8, 7.8)),
    "focus": ((6.7, 6.2), (12.6, 11.2)),
    "critical": ((6.5, 6.0), (8.9, 8.0)),
    "warning": ((6.3, 5.8), (10.1, 9.0)),
    "ok": ((6.7, 6.2), (10.0, 8.9)),
}
"""Contrast on the page and on panels, light and dark."""
HUES = tuple(f"h{number}" for number in range(8))


def test_distance_is_measured_as_everywhere():
    # Two of the pairs that Sharma, Wu and Dalal publish for checking.
    assert distance((50, 2.6772, -79.7751), (50, 0, -82.7485)) == pytest.approx(2.0425, abs=1e-4)
    assert distance((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387)) == pytest.approx(1.2644, abs=1e-4)
    assert distance(lab(parsed("336699")), lab(parsed("336699"))) == 0


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("theme", THEMES)
def test_words_have_the_contrast_that_is_promised(name: str, theme: str):
    at = THEMES[theme]
    found = [contrast(TOKENS[name][at], TOKENS[ground][at]) for ground in ("page", "panel")]
    assert all(ratio >= figure - 0.05 for ratio, figure in zip(found, FIGURES[name][at], strict=True)), found


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("hue", HUES)
def test_hues_are_seen_on_the_page(hue: str, theme: str):
    assert contrast(TOKENS[hue][THEMES[theme]], TOKENS["page"][THEMES[theme]]) >= 3


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("theme", THEMES)
def test_hues_are_told_apart_by_all_eyes(eye: str, theme: str):
    seen = [lab(TOKENS[hue][THEMES[theme]], eye) for hue in HUES]
    assert min(distance(one, other) for one, other in combinations(seen, 2)) >= 15
