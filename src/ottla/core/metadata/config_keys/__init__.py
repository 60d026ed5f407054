"""The tables of settings, one file for each kind of resource, read when somebody asks.

A line is `name | type | default | rule | update mode | documentation`. `null` is no default, `required` none at all;
an empty cell is the empty text. Names, types, defaults and rules are those of Apache Kafka 4.3.1; the texts are ours.
"""

from __future__ import annotations

from typing import Any


def read_text(stem: str) -> str:
    # The loader reads files and zip archives alike, without the import of importlib.resources.
    assert __spec__ is not None
    loader: Any = __spec__.loader
    return bytes(loader.get_data(f"{__path__[0]}/{stem}.txt")).decode()
