"""`python -m tools.docs_site [--out site]`."""

from __future__ import annotations

from pathlib import Path
from shutil import copy

import click

from ottla.cli.docs import replace
from ottla.explain import site
from tools.docs_site import layout
from tools.docs_site.pages import DOCS, all_sections


@click.command()
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("site"), show_default=True)
def build(out: Path) -> None:
    """Build the documentation as a site that works offline."""
    files = list(layout.files(all_sections()))
    replace(out, files, len(files) + site.file_count())
    for source in [*(DOCS / "images").iterdir(), *DOCS.glob("*/*.txt")]:
        target = out / source.relative_to(DOCS)
        target.parent.mkdir(exist_ok=True)
        copy(source, target)


build()
