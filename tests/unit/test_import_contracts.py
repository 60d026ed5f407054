"""The linter of imports itself: it has to notice what it is there for."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from grimp import ImportGraph
from importlinter import ContractCheck
from importlinter.configuration import configure

from tools.import_contracts import ForbiddenWherePresentContract, NoCirclesContract, OneWayContract, parse_table

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
configure()  # import-linter's command does this first; its own contracts measure time with what it sets
SESSION = {"root_packages": ["ottla"], "include_external_packages": True}


def configured(kind: str) -> dict[str, Any]:
    contracts = tomllib.loads(PYPROJECT.read_text())["tool"]["importlinter"]["contracts"]
    options: dict[str, Any] = next(contract for contract in contracts if contract["type"] == kind)
    return options


def graph_of(*imports: tuple[str, str]) -> ImportGraph:
    """A graph of packages that import each other, with the packages above them."""
    graph = ImportGraph()
    for module in {name for pair in imports for name in pair} | {"ottla"}:
        external = not module.startswith("ottla")
        for end in range(1, module.count(".") + 2):
            name = ".".join(module.split(".")[:end])
            if name not in graph.modules:
                graph.add_module(name, is_squashed=external)
    for importer, imported in imports:
        graph.add_import(importer=importer, imported=imported, line_number=7, line_contents=f"import {imported}")
    return graph


def one_way(*imports: tuple[str, str]) -> ContractCheck:
    return OneWayContract("one way", SESSION, configured("one_way")).check(graph_of(*imports), verbose=False)


def no_io(*imports: tuple[str, str]) -> ContractCheck:
    options = configured("forbidden_where_present")
    return ForbiddenWherePresentContract("no I/O", SESSION, options).check(graph_of(*imports), verbose=False)


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("ottla.explain.page", "ottla.wire.index"),
        ("ottla.broker.handlers.fetch", "ottla.log.segment"),
        ("ottla.spark.jobs", "ottla.client"),
        ("ottla.console.app", "ottla.draw.svg"),
        ("ottla.cli.serve", "ottla.broker"),
        ("ottla.testing", "ottla.broker"),
        ("ottla.wire.batch", "ottla.wire.compress"),
        ("ottla.client", "ottla"),
    ],
)
def test_what_the_design_allows_passes(importer: str, imported: str):
    assert one_way((importer, imported)).kept


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("ottla.wire.batch", "ottla.log.segment"),
        ("ottla.spark.jobs", "ottla.broker.node"),
        ("ottla.console.app", "ottla.broker.node"),
        ("ottla.broker.node", "ottla.client"),
        ("ottla.core.groups.streams", "ottla.core.share"),
        ("ottla.client", "ottla.cli"),
        ("ottla", "ottla.wire"),
    ],
)
def test_what_the_design_forbids_is_found(importer: str, imported: str):
    check = one_way((importer, imported))
    assert not check.kept
    assert importer in check.metadata["broken"][0]
    assert imported in check.metadata["broken"][0]


@pytest.mark.parametrize("package", ["utils", "core.utils"])
def test_a_package_that_nobody_placed_is_found(package: str):
    check = one_way((f"ottla.{package}.inner", "ottla.wire"))
    assert not check.kept
    assert check.metadata["unplaced"] == [package]


@pytest.mark.parametrize(
    "package",
    ["wire", "explain", "health", "draw", "core.quorum", "core.metadata", "core.groups", "core.share", "core.txn"],
)
@pytest.mark.parametrize("module", ["asyncio", "os", "random", "socket", "time"])
def test_the_core_may_not_reach_outside(package: str, module: str):
    assert not no_io((f"ottla.{package}.inner", module)).kept


def test_the_edge_may_reach_outside():
    assert no_io(("ottla.broker.node", "asyncio"), ("ottla.wire.batch", "struct")).kept


def test_the_table_allows_what_it_implies():
    # The contract looks at direct imports only; that is enough as long as a package may import what its imports import.
    allowed = parse_table(configured("one_way")["table"])
    inner = {name for name in allowed if name.startswith("core.")}
    for package, names in allowed.items():
        known = names | inner if "core" in names else names
        for name in known - {"*", "core"}:
            assert package == "__main__" or allowed[name] <= known, f"{package} -> {name}"


def no_circles(*imports: tuple[str, str]) -> ContractCheck:
    return NoCirclesContract("no circles", SESSION, configured("no_circles")).check(graph_of(*imports), verbose=False)


def test_a_circle_of_three_is_found_and_a_pair_is_not():
    a, b, c = (f"ottla.broker.{name}" for name in ("share.a", "network.b", "loop.c"))
    assert no_circles((a, b), (b, a), (b, c)).kept
    assert no_circles((a, b), (b, c), (c, a), ("ottla.broker", a)).metadata["circles"] == [sorted((a, b, c))]
