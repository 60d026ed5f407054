"""Where pages lie: the file of each page in the site, and how one leads to another.

Addresses are relative, so that the site works from any folder, from a web server and from a disk alike.
"""

from __future__ import annotations

from ottla.explain.assemble import default_version
from ottla.explain.page import PageRef
from ottla.explain.prose import message_of

HOME = "index.html"


def exact(ref: PageRef) -> PageRef:
    """The same page with everything said: an API alone means its request, no version means the default one."""
    if ref.kind == "error":
        return ref
    part = (ref.part or "request") if ref.kind == "api" else None
    version = default_version(message_of(ref)) if ref.version is None else ref.version
    return PageRef(ref.kind, ref.name, part, version)


def path(ref: PageRef) -> str:
    """The file of a page, seen from the root of the site: `api/ShareFetch/request-v2.html`."""
    if ref.kind == "error":
        return f"error/{ref.name}.html"
    return f"{stem(ref)}{exact(ref).version}.html"


def stem(ref: PageRef) -> str:
    """The file's name up to the version, which all versions of a message share."""
    ref = exact(ref)
    return f"{ref.kind}/{ref.name}/{f'{ref.part}-' if ref.part else ''}v"


def root_from(file: str) -> str:
    """What leads from a file to the root of the site: `../../`."""
    return "../" * file.count("/")


def field_anchor(field: str) -> str:
    """The id of a field in the schema of its page: `f-Topics.Partitions` for `XRequest.Topics[].Partitions`."""
    return f"f-{field.partition('.')[2].replace('[]', '')}"
