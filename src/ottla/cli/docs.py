"""`ottla docs`: a site with the pages about the protocol."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

import click

from ottla.cli.failure import Failure

if TYPE_CHECKING:
    from ottla.explain.site import SiteFile

MARKER = ".ottla-site"
"""Marks a folder that `ottla docs build` created, and may replace."""


@click.group()
def docs() -> None:
    """Build the protocol reference as a site that works offline."""


@docs.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("site"),
    show_default=True,
    help="The directory for the site; an older site there is replaced.",
)
def build(out: Path) -> None:
    """Write a page for each message version, record type and error, with an index and a search.

    The site needs no server: open index.html in a browser.
    """
    from ottla.explain.site import file_count, files

    replace(out, files(), file_count())


def replace(out: Path, files: Iterable[SiteFile], count: int) -> None:
    """Write a site in place of an older one, which stays until the new one is whole."""
    if out.exists() and not (out / MARKER).exists() and any(out.iterdir()):
        raise Failure(f"{out} is not empty and was not made by ottla", "choose another directory with --out")
    fresh = out.parent / f"{out.name}.new"
    if fresh.exists():
        rmtree(fresh)  # left by an interrupted build
    count, size = write(files, fresh, count)
    if out.exists():
        rmtree(out)
    fresh.rename(out)
    click.echo(f"{count} files, {size / 1e6:.1f} MB; open {out / 'index.html'}")


def write(files: Iterable[SiteFile], folder: Path, count: int) -> tuple[int, int]:
    """Write the files below a new folder, with a progress bar; returns the number of files and of bytes."""
    from rich.console import Console
    from rich.progress import track

    folder.mkdir(parents=True)
    (folder / MARKER).touch()
    written = size = 0
    for file in track(files, "pages", count, console=Console(stderr=True), transient=True):
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        size += target.write_bytes(file.text.encode())
        written += 1
    return written, size
