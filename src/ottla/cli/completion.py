"""`ottla completion`: completion scripts for shells."""

from __future__ import annotations

from typing import Final

import click

SHELLS: Final = ("bash", "zsh", "fish")
VARIABLE: Final = "_OTTLA_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a shell-completion script.

    \b
    ottla completion bash >> ~/.bashrc
    ottla completion zsh >> ~/.zshrc
    ottla completion fish > ~/.config/fish/completions/ottla.fish
    """
    from click.shell_completion import ShellComplete, get_completion_class

    from ottla.cli import GROUP

    kind = get_completion_class(shell)
    assert kind is not None, shell
    # click's own class starts a bash to check its version.
    click.echo(ShellComplete.source(kind(GROUP, {}, "ottla", VARIABLE)))
