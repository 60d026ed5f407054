"""A digest of all pages."""

from __future__ import annotations

from hashlib import sha256

from ottla.explain import site


def digest() -> str:
    """One number for all names and bytes of the site."""
    summed = sha256()
    for file in site.files():
        summed.update(f"{file.path}\0{file.text}\0".encode())
    return summed.hexdigest()
