"""Config providers: settings with values from files and the environment, so that configuration files need no secrets.

    config.providers=file,env
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider
    config.providers.file.param.allowed.paths=/etc/ottla
    ssl.key.password=${file:/etc/ottla/secrets.properties:key-password}
    broker.rack=${env:RACK}

The three of Apache Kafka are known by the names of their classes: a value of a properties file (`${file:PATH:KEY}`), a
whole file of a directory (`${directory:PATH:FILE}`), a variable of the environment (`${env:NAME}`). The class may be
left out where a provider is called file, directory or env. A placeholder of a provider that is not configured stays as
it is; one that cannot be filled is an error, which names the setting, the file and the key, and never a value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Final

from ottla.core.metadata.config_defs import ConfigError
from ottla.core.metadata.config_values import split_list
from ottla.wire.properties import read_properties

__all__ = ["PROVIDERS", "Providers"]

PROVIDERS: Final = "config.providers"
_PLACEHOLDER: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_PACKAGE: Final = "org.apache.kafka.common.config.provider."
_CLASSES: Final = {
    "file": f"{_PACKAGE}FileConfigProvider",
    "directory": f"{_PACKAGE}DirectoryConfigProvider",
    "env": f"{_PACKAGE}EnvVarConfigProvider",
}
_HIDDEN_LENGTH_MIN: Final = 4
"""Shorter values are taken out of texts only where they stand in quotes."""

_Provider = Callable[[str, str], str]
"""From a path and a key to the value; ConfigError says what is missing."""


class Providers:
    """The providers that settings name. What they gave is remembered, so that it can be kept out of texts."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment
        self._given: dict[str, str] = {}

    def resolved(self, settings: Mapping[str, str], *others: Mapping[str, str]) -> dict[str, str]:
        """Settings with their placeholders filled, by the providers that they or `others` configure."""
        return {name: self.resolve(name, text, settings, *others) for name, text in settings.items()}

    def resolve(self, name: str, text: str, *settings: Mapping[str, str]) -> str:
        """One setting's value. `settings` say which providers there are, the strongest first."""
        if "${" not in text or name.startswith(PROVIDERS):
            return text
        configured = _merged(settings)
        wanted = split_list(configured.get(PROVIDERS, ""))

        def fill(match: re.Match[str]) -> str:
            provider, path, key = match.groups()
            if provider not in wanted:
                return match[0]
            try:
                value = self._provider(provider, configured)(path or "", key).strip()
            except ConfigError as error:
                raise ConfigError(f"{name} cannot be {match[0]}: {error}") from None
            self._given[value] = match[0]
            return value

        return _PLACEHOLDER.sub(fill, text)

    def hide(self, text: str) -> str:
        """A text for people, with placeholders in the place of what providers gave."""
        for value, placeholder in self._given.items():
            text = text.replace(repr(value), repr(placeholder))
            if len(value) >= _HIDDEN_LENGTH_MIN:
                text = text.replace(value, placeholder)
        return text

    # --- the providers

    def _provider(self, provider: str, settings: Mapping[str, str]) -> _Provider:
        chosen = settings.get(f"{PROVIDERS}.{provider}.class", _CLASSES.get(provider, ""))
        parameters = f"{PROVIDERS}.{provider}.param."
        allowed = split_list(settings.get(f"{parameters}allowed.paths", ""))
        if chosen == _CLASSES["file"]:
            return lambda path, key: _of_file(_allowed(path, allowed), key)
        if chosen == _CLASSES["directory"]:
            return lambda path, key: _of_directory(_allowed(path, allowed), key)
        if chosen == _CLASSES["env"]:
            pattern = settings.get(f"{parameters}allowlist.pattern", ".*")
            return lambda path, key: self._variable(path, key, pattern)
        known = ", ".join(_CLASSES.values())
        what = f"{PROVIDERS}.{provider}.class is {chosen}" if chosen else f"{PROVIDERS}.{provider}.class is not set"
        raise ConfigError(f"{what}; known: {known}")

    def _variable(self, path: str, key: str, pattern: str) -> str:
        if path:
            raise ConfigError("environment variables have no path")
        if not re.fullmatch(pattern, key):
            raise ConfigError(f"allowlist.pattern does not allow {key}")
        if key not in self._environment:
            raise ConfigError(f"the environment variable {key} is not set")
        return self._environment[key]


def _merged(settings: tuple[Mapping[str, str], ...]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for each in reversed(settings):
        merged.update((name, text) for name, text in each.items() if name.startswith(PROVIDERS))
    return merged


def _allowed(path: str, allowed: tuple[str, ...]) -> str:
    if not path:
        raise ConfigError("no path is given")
    real = os.path.realpath(path)
    roots = [os.path.realpath(each) for each in allowed]
    if roots and not any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in roots):
        raise ConfigError(f"allowed.paths does not allow {path}")
    return path


def _of_file(path: str, key: str) -> str:
    values = read_properties(_read(path))
    if key not in values:
        raise ConfigError(f"the file {path} has no key {key}")
    return values[key]


def _of_directory(path: str, key: str) -> str:
    if os.path.basename(key) != key:
        raise ConfigError(f"{key} is not a file name in {path}")
    return _read(os.path.join(path, key))


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except UnicodeDecodeError:
        raise ConfigError(f"the file {path} is not text in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"the file {path} cannot be read: {error.strerror}") from None
