"""`ottla version`: what to put into a bug report."""

import json
import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

import click

from ottla import __version__

PACKAGES = ("msgspec", "crc32c", "cramjam", "click", "rich", "dpkt", "numpy", "numba", "pyarrow", "pyspark")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="JSON instead of lines.")
def version(as_json: bool) -> None:
    """Show the versions of ottla, Python and the installed packages that ottla uses."""
    found = versions()
    if as_json:
        click.echo(json.dumps({"rows": [{"name": name, "version": number} for name, number in found.items()]}))
        return
    for name, number in found.items():
        click.echo(f"{name} {number}")


def versions() -> dict[str, str]:
    """Versions by name: ottla first, then Python, then those of the packages that are installed."""
    found = {"ottla": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = installed_version(package)
        except PackageNotFoundError:  # the extras are optional
            continue
    return found
