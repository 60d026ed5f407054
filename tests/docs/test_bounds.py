"""The page about bounds has the bounds that there are."""

from __future__ import annotations

from pathlib import Path

from ottla.broker.config.bounds import BOUNDS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "bounds.md"


def test_the_page_lists_every_bound_as_it_is() -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if " | " in line]
    shown = {name: (of, far, beyond) for name, of, far, beyond in rows[1:]}
    assert set(shown) == {bound.name for bound in BOUNDS}
    for bound in BOUNDS:
        of, far, beyond = shown[bound.name]
        assert (of, beyond) == (bound.of, bound.beyond)
        assert bound.setting in far
        assert not bound.home or f"{bound.value:,}" in far
