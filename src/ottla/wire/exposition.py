"""Prometheus' text format: metrics as lines, each family with its type and what it means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["CONTENT_TYPE", "Labels", "Sample", "exposition"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Labels = Mapping[str, object]
Sample = tuple[str, Labels, float]
"""Name, labels and value. The name says the type: `_total` ends a counter, `_bucket` the buckets of a histogram."""


def exposition(samples: Iterable[Sample], about: Mapping[str, str] | None = None) -> str:
    """The page of all samples; `about` says what a metric means, by its name."""
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample[0], []).append(sample)
    lines: list[str] = []
    for name, found in by_name.items():
        if about is not None and name in about:
            lines.append(f"# HELP {name} {_escaped_help(about[name])}")
        if name.endswith("_total"):
            lines.append(f"# TYPE {name} counter")
        elif name.endswith("_bucket"):
            lines.append(f"# TYPE {name.removesuffix('_bucket')} histogram")
        elif f"{name.rpartition('_')[0]}_bucket" not in by_name:
            lines.append(f"# TYPE {name} gauge")
        lines += [f"{name}{_labels(labels)} {_number(value)}" for _, labels, value in found]
    return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    pairs = (f'{name}="{_escaped(str(value))}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}"


def _escaped_help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _escaped(text: str) -> str:
    return _escaped_help(text).replace('"', r"\"")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
