"""Scenes: the values of the example of a message, written as text.

A scene overrides the rules for single fields. Files in `scenes/` hold scenes::

    file    = { scene | comment | blank }            comment = "--" text, alone on its line
    scene   = Name [" -- " caption]                  then its lines, two spaces deep
    line    = path ["@" range] ": " value            "client": the id in the header; "caption": another one
    path    = names of fields, joined by "."         an array of structs on the way has one element
    value   = JSON, in which $word (also without quotes) stands for a member of the cast, $version for the version

An array of structs may also be given as a whole, `[{"Name": "a"}, {"Name": "b"}]`; the rules make the fields that an
element leaves out. `@range` limits a line to versions of the message.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ottla.wire.text import ALWAYS, Range, parse_range

_BARE_WORD = re.compile(r'(?<!")\$\w+')
_LINE = re.compile(r"(?P<path>[\w.]+)(?:@(?P<versions>[\d+-]+))?: (?P<value>.+)")
_CLIENT = ("client",)
_CAPTION = ("caption",)


class Line(NamedTuple):
    path: tuple[str, ...]
    versions: Range
    value: str


class Scene(NamedTuple):
    title: str
    lines: tuple[Line, ...]

    def caption(self, version: int) -> str:
        """The caption of the example, a sentence."""
        return self._special(_CAPTION, version) or self.title

    def client_id(self, version: int) -> str | None:
        """The client id of the header, as the scene has it."""
        return self._special(_CLIENT, version)

    def _special(self, path: tuple[str, ...], version: int) -> str | None:
        return next((line.value for line in self.lines if line.path == path and version in line.versions), None)

    def overrides(self, version: int) -> dict[str, Any]:
        """The values for one version as a tree: field name -> JSON value, or -> the tree of a struct."""
        tree: dict[str, Any] = {}
        for line in self.lines:
            if version in line.versions and line.path not in (_CLIENT, _CAPTION):
                _put(tree, line.path, json.loads(_BARE_WORD.sub(r'"\g<0>"', line.value)))
        return tree


EMPTY = Scene("", ())


@cache
def scene_of(name: str) -> Scene:
    """The scene of a message; an empty one if the rules are enough."""
    block = _blocks().get(name)
    return EMPTY if block is None else _parse_scene(block)


def names() -> tuple[str, ...]:
    """The messages that have a scene."""
    return tuple(_blocks())


class _Block(NamedTuple):
    caption: str
    lines: list[str]


@cache
def _blocks() -> dict[str, _Block]:
    """The text of every scene, not yet parsed."""
    found: dict[str, _Block] = {}
    for file in (files(__package__) / "scenes").iterdir():
        if file.name.endswith(".txt"):
            found |= split_scenes(file.read_text(encoding="utf-8"))
    return found


def split_scenes(text: str) -> dict[str, _Block]:
    found: dict[str, _Block] = {}
    block = _Block("", [])
    for line in text.splitlines():
        if not line or line.startswith("--"):
            continue
        if line.startswith(" "):
            block.lines.append(line.strip())
        else:
            name, _, caption = line.partition(" -- ")
            assert name not in found, f"two scenes of {name}"
            block = found[name] = _Block(caption, [])
    return found


def _parse_scene(block: _Block) -> Scene:
    found = []
    for line in block.lines:
        match = _LINE.fullmatch(line)
        assert match, f"not a line of a scene: {line}"
        versions = parse_range(match["versions"]) if match["versions"] else ALWAYS
        found.append(Line(tuple(match["path"].split(".")), versions, match["value"]))
    return Scene(block.caption, tuple(found))


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value
