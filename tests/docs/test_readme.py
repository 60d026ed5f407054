"""What the README shows has to happen."""

import doctest
import re
from pathlib import Path

from tools.readme_figures import updated

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "GAPS.md")


def test_the_figures_of_the_readme_are_those_that_are_kept():
    text = (ROOT / "README.md").read_text()
    assert text == updated(text), "python -m tools.readme_figures writes them"


def test_the_examples_of_the_readme_run():
    outcome = doctest.testfile(str(ROOT / "README.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 5
    assert outcome.failed == 0


def test_every_make_target_that_the_pages_name_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        target for page in PAGES for target in re.findall(r"make ([a-z-]+)(?=`| +#|\)|$)", (ROOT / page).read_text())
    }
    assert {"demo", "test", "generate"} <= named
    assert named <= targets
