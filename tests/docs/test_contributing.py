"""What CONTRIBUTING.md says about packages, areas and folders is what the import contracts and the tree say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from tools.import_contracts import ANYTHING, parse_table

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "ottla"
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]


def contract(kind: str) -> dict[str, Any]:
    [found] = [each for each in TOOLS["importlinter"]["contracts"] if each["type"] == kind]
    return found


def rows(head: str) -> list[list[str]]:
    """The cells of the table that begins with this line."""
    _, _, rest = PAGE.partition(f"\n{head}\n")
    lines = rest.partition("\n\n")[0].splitlines()[1:]
    assert lines, f"there is no table {head}"
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def code(text: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", text)


def sentence(begin: str) -> str:
    """The rest of the sentence that begins so."""
    return re.split(r"\.\s", PAGE.partition(begin)[2])[0]


def told_imports() -> dict[str, set[str]]:
    """Package -> what the table says it may import, the upper ones first."""
    words = {"anything": {ANYTHING}, "nothing of ottla": set[str]()}
    return {
        code(package)[0].removeprefix("ottla."): words.get(imports) or set(code(imports))
        for package, _, imports in rows("| package | what it does | may import |")
    }


def folders(parent: Path) -> set[str]:
    """Those that hold more than what Python has left behind."""
    return {path.name for path in parent.iterdir() if any(each.suffix != ".pyc" for each in path.rglob("*.*"))}


def test_the_table_has_every_package_and_no_other() -> None:
    packages = folders(SRC) - {"core"} | {f"core.{name}" for name in folders(SRC / "core")}
    assert set(told_imports()) == packages


def test_the_table_says_of_imports_what_the_contract_says() -> None:
    allowed = {name: set(imports) for name, imports in parse_table(contract("one_way")["table"]).items()}
    to_come = code(sentence("A package still to come has its line in"))[1:]
    del allowed["__main__"]
    assert not any((SRC / name).exists() for name in to_come)
    assert told_imports() == {name: imports for name, imports in allowed.items() if name not in to_come}


def test_packages_are_told_above_what_they_import() -> None:
    told = list(told_imports())
    for place, (package, imports) in enumerate(told_imports().items()):
        above = {name for name in told[:place] for each in imports if f"{name}.".startswith(f"{each}.")}
        assert not above, package


def test_the_areas_of_the_broker_are_told_in_the_order_of_their_contract() -> None:
    told = [code(area)[0] for area, _ in rows("| area | what it does |")]
    present = {f"{name}/" for name in folders(SRC / "broker")} | {path.name for path in SRC.glob("broker/[!_]*.py")}
    assert set(told) == present
    assert [name.rstrip("/").removesuffix(".py") for name in told] == contract("layers")["layers"]


def test_packages_without_input_or_output_are_those_of_the_contract() -> None:
    limits = contract("forbidden_where_present")
    told = code(sentence("Some packages do no input or output:"))
    assert {f"ottla.{name}" for name in told} == set(limits["source_modules"])
    assert set(code(sentence("They import none of"))) == set(limits["forbidden_modules"])


def test_every_place_outside_the_package_is_told() -> None:
    told = {code(place)[0].rstrip("/") for place, _ in rows("| place | what |")}
    assert not [place for place in told if not (ROOT / place).is_dir()]
    shipped = {name.strip("/") for name in TOOLS["hatch"]["build"]["targets"]["sdist"]["include"] if "." not in name}
    assert shipped - {"src", "tests", "LICENSE"} <= told


def test_every_folder_of_tests_is_told() -> None:
    told = re.findall(r"^tests/(\w+)/ ", PAGE, re.MULTILINE)
    assert sorted(told) == sorted(folders(ROOT / "tests"))
