"""Kinds of import contract for import-linter that it does not have itself.

import-linter's own contracts refuse a module that does not exist, and its layers cannot say "spark may use the client
but not the broker". Here one table says for each package what it may import; a package that is missing from the table
breaks the contract, so nobody forgets to place a new one.
"""

from collections.abc import Mapping, Set
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output
from importlinter.contracts.forbidden import ForbiddenContract

ANYTHING = "*"
_PAIR = 2


class OneWayContract(Contract):
    """Each package imports only what its line of the table allows.

    `root` is the package whose children the table is about, `table` has lines such as "broker: wire log"; "*" allows
    everything. A line can be about a package inside of another ("core.groups: wire core.coordinator"): then all
    packages beside it need a line, and "core" on the right-hand side stands for all of them. Imports from the root's
    own module are free, but that module itself imports none of the children.
    """

    root = fields.StringField()
    table = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        allowed = parse_table(self.table)  # type: ignore[arg-type]  # import-linter fills fields with values
        root = str(self.root)
        present = _packages(graph, root, allowed)
        unplaced = sorted(present - allowed.keys())
        broken = [
            line for package in sorted(present & allowed.keys()) for line in _strays(graph, root, package, allowed)
        ]
        broken += [f"{root} imports {name}" for name in _imported(graph, root, root)]
        return ContractCheck(kept=not (broken or unplaced), metadata={"broken": broken, "unplaced": unplaced})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for line in check.metadata["broken"]:
            output.print_error(f"- {line}")
        for package in check.metadata["unplaced"]:
            output.print_error(f"- {self.root}.{package} is not in the table: say what it may import")
        output.new_line()


class ForbiddenWherePresentContract(ForbiddenContract):
    """import-linter's forbidden contract, holding for those of its source modules that exist."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        present = {module for module in self.source_modules if str(module) in graph.modules}
        self.source_modules: Any = present
        return super().check(graph, verbose)


class NoCirclesContract(Contract):
    """The modules of a package do not import each other in a circle of more than two."""

    package = fields.StringField()

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        package = str(self.package)
        modules = {package} | graph.find_descendants(package)
        imports = {module: graph.find_modules_directly_imported_by(module) & modules for module in modules}
        circles = [circle for circle in circles_in(imports) if len(circle) > _PAIR]
        return ContractCheck(kept=not circles, metadata={"circles": circles})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for circle in check.metadata["circles"]:
            output.print_error(f"- a circle of {len(circle)}: {', '.join(circle)}")
        output.new_line()


def circles_in(imports: Mapping[str, Set[str]]) -> list[list[str]]:
    """Groups of modules each of which reaches all others of its group."""
    reached = {module: _reached(imports, module) for module in imports}
    circles = {frozenset({other for other in reached[module] if module in reached[other]}) for module in imports}
    return sorted(sorted(circle) for circle in circles if len(circle) > 1)


def _reached(imports: Mapping[str, Set[str]], module: str) -> set[str]:
    found: set[str] = set()
    todo = [module]
    while todo:
        new = imports[todo.pop()] - found
        found |= new
        todo += new
    return found


def parse_table(lines: list[str]) -> dict[str, frozenset[str]]:
    """Package -> the packages it may import, from lines such as "broker: wire log"."""
    pairs = (line.partition(":") for line in lines)
    return {package.strip(): frozenset(names.split()) for package, _, names in pairs}


def _packages(graph: ImportGraph, root: str, allowed: dict[str, frozenset[str]]) -> set[str]:
    """The packages that need a line of their own, named from the root on."""
    names = [child.removeprefix(f"{root}.") for child in graph.find_children(root)]
    found = set()
    for name in names:
        if any(each.startswith(f"{name}.") for each in allowed):
            names += [child.removeprefix(f"{root}.") for child in graph.find_children(f"{root}.{name}")]
        else:
            found.add(name)
    return found


def _strays(graph: ImportGraph, root: str, package: str, allowed: dict[str, frozenset[str]]) -> list[str]:
    if ANYTHING in allowed[package]:
        return []
    name = f"{root}.{package}"
    modules = {name} | graph.find_descendants(name)
    rule = f"{package} may import {', '.join(sorted(allowed[package])) or 'nothing'}"
    return [
        f"{module}:{_line(graph, module, imported)} imports {imported}, but {rule}"
        for module in sorted(modules)
        for imported in _imported(graph, root, module)
        if not _is_within(imported.removeprefix(f"{root}."), allowed[package] | {package})
    ]


def _is_within(module: str, packages: frozenset[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _imported(graph: ImportGraph, root: str, module: str) -> list[str]:
    return sorted(name for name in graph.find_modules_directly_imported_by(module) if name.startswith(f"{root}."))


def _line(graph: ImportGraph, importer: str, imported: str) -> int:
    return min(
        (detail["line_number"] for detail in graph.get_import_details(importer=importer, imported=imported)), default=0
    )
