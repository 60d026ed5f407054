"""The schema files, read when the first message of a file is asked for."""

from __future__ import annotations

from functools import cache
from typing import Any

from ottla.wire.index import MESSAGES
from ottla.wire.text import Field, Message, parse_glossary, parse_messages


def read_text(stem: str) -> str:
    # The loader reads files and zip archives alike; importlib.resources would, too, at 20 ms for its import.
    assert __spec__ is not None
    loader: Any = __spec__.loader
    return bytes(loader.get_data(f"{__path__[0]}/{stem}.txt")).decode()


@cache
def file_messages(stem: str) -> dict[str, Message]:
    """The messages of one file, by name."""
    return {message.name: message for message in parse_messages(read_text(stem))}


def message_schema(name: str) -> Message:
    """The schema of a message that the index knows (KeyError otherwise)."""
    return file_messages(MESSAGES[name].file)[name]


@cache
def glossary() -> dict[str, str]:
    return parse_glossary(read_text("glossary"))


def field_about(field: Field) -> str:
    """What a field is for: the text in its schema, or else the glossary's."""
    return field.about or glossary().get(field.name, "")
