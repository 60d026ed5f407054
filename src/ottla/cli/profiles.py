"""Profiles: clusters with a name, in a file of the user's. `--profile` and OTTLA_PROFILE choose one."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import click

from ottla.cli.failure import Failure, nearest

PROFILE_VARIABLE: Final = "OTTLA_PROFILE"


class Profile(NamedTuple):
    """A cluster, and how to connect to it."""

    bootstrap_server: str
    command_config: Path | None = None


def profiles_file() -> Path:
    return Path(click.get_app_dir("ottla")) / "profiles.toml"


def read_profiles() -> dict[str, Profile]:
    import tomllib

    path = profiles_file()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    try:
        return {name: _profile(each) for name, each in tomllib.loads(text).items()}
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as error:
        raise Failure(f"{path} cannot be read: {error}", "mend or delete it, and add your profiles again") from None


def write_profiles(profiles: Mapping[str, Profile]) -> None:
    """Replace the file; other users of the machine cannot read it."""
    path = profiles_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(_table(name, each) for name, each in sorted(profiles.items()))
    new = path.with_suffix(".tmp")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)


def profile_named(name: str) -> Profile:
    profiles = read_profiles()
    if name not in profiles:
        raise no_profile(name, profiles)
    return profiles[name]


def no_profile(name: str, profiles: Mapping[str, Profile]) -> Failure:
    advice = nearest(name, profiles) or f"'ottla profile add {name} --bootstrap HOST:PORT' adds it"
    return Failure(f"there is no profile '{name}'", advice)


def _profile(table: Mapping[str, str]) -> Profile:
    config = table.get("command_config")
    return Profile(table["bootstrap"], None if config is None else Path(config))


def _table(name: str, profile: Profile) -> str:
    values = {"bootstrap": profile.bootstrap_server}
    if profile.command_config is not None:
        values["command_config"] = str(profile.command_config)
    lines = [f"{key} = {_quoted(value)}" for key, value in values.items()]
    return "\n".join([f"[{_quoted(name)}]", *lines, ""])


def _quoted(text: str) -> str:
    """A basic string of TOML; its escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
