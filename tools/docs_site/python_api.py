"""The public Python packages as pages, from their docstrings and signatures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from importlib import import_module
from types import ModuleType

_CLIENT = (
    "",
    ".topics",
    ".configs",
    ".cluster",
    ".groups",
    ".group_offsets",
    ".offsets",
    ".errors",
    ".sasl",
    ".blocking",
)
MODULES = (
    *(f"ottla.client{part}" for part in _CLIENT),
    "ottla.testing",
    "ottla.spark",
    "ottla.topology_descriptions",
    "ottla.assignors",
)


@cache
def pages() -> dict[str, str]:
    """Path of a page -> its Markdown."""
    return {f"reference/python/{name}.md": "\n\n".join(_module(import_module(name))) for name in MODULES}


def _module(module: ModuleType) -> Iterator[str]:
    yield f"# {module.__name__}"
    yield inspect.getdoc(module) or ""
    for name in module.__all__:
        thing = getattr(module, name)
        yield f"## {name}"
        if inspect.isclass(thing):
            yield from _class(name, thing)
        elif callable(thing):
            yield from _function(name, thing)
        else:
            yield f"`{thing!r}`"


def _class(name: str, thing: type) -> Iterator[str]:
    if issubclass(thing, Enum):
        yield _block(f"class {name}\n" + "\n".join(f"    {each.name} = {each.value!r}" for each in thing))
    else:
        yield _signature(f"class {name}", thing)
    yield _doc(thing)
    for each, member in vars(thing).items():
        if each.startswith("_"):
            continue
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if inspect.isfunction(function):
            yield f"### {name}.{each}"
            yield from _function(each, function)
        elif isinstance(member, property):
            yield f"### {name}.{each}"
            yield _block(f"{each}: {inspect.signature(member.fget).return_annotation}" if member.fget else each)
            yield _doc(member)


def _function(name: str, thing: Callable[..., object]) -> Iterator[str]:
    yield _signature(f"async def {name}" if inspect.iscoroutinefunction(thing) else f"def {name}", thing)
    yield _doc(thing)


def _signature(head: str, thing: Callable[..., object]) -> str:
    try:
        signature = inspect.signature(thing)
    except ValueError:
        return _block(head)
    if head.startswith("class "):
        signature = signature.replace(return_annotation=signature.empty)
    one = f"{head}{signature}"
    if len(one) > 88:
        returned = "" if signature.return_annotation is signature.empty else f" -> {signature.return_annotation}"
        inner = "".join(f"    {each},\n" for each in signature.parameters.values())
        one = f"{head}(\n{inner}){returned}"
    return _block(_unquoted(one))


def _unquoted(text: str) -> str:
    """Annotations are kept as text, and shown in quotes; a reader does without them."""
    return re.sub(r"(: |-> )(['\"])(.*?)\2(?=[,=)\s]|$)", r"\1\3", text)


def _block(text: str) -> str:
    return f"```python\n{text}\n```"


def _doc(thing: object) -> str:
    return inspect.getdoc(thing) or ""
