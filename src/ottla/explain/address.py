"""The file of each page in the site, and the links between pages.

Links are relative, so that the site works in any folder, on a web server and on a disk.
"""

from __future__ import annotations

from ottla.explain.assemble import default_version
from ottla.explain.page import PageRef
from ottla.explain.prose import message_of

HOME = "index.html"


def exact(ref: PageRef) -> PageRef:
    """The complete reference: an API alone means its request, no version means the default one."""
    if ref.kind == "error":
        return ref
    part = (ref.part or "request") if ref.kind == "api" else None
    version = default_version(message_of(ref)) if ref.version is None else ref.version
    return PageRef(ref.kind, ref.name, part, version)


def path(ref: PageRef) -> str:
    """The file of a page, relative to the root of the site: `api/ShareFetch/request-v2.html`."""
    if ref.kind == "error":
        return f"error/{ref.name}.html"
    return f"{stem(ref)}{exact(ref).version}.html"


def stem(ref: PageRef) -> str:
    """The path without the version, which all versions of a message share."""
    ref = exact(ref)
    return f"{ref.kind}/{ref.name}/{f'{ref.part}-' if ref.part else ''}v"


def root_from(file: str) -> str:
    """The path from a file to the root of the site: `../../`."""
    return "../" * file.count("/")


def field_anchor(field: str) -> str:
    """The id of a field in the schema of its page: `f-Topics.Partitions` for `XRequest.Topics[].Partitions`."""
    return f"f-{field.partition('.')[2].replace('[]', '')}"
