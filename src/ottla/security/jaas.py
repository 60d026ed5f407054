"""JAAS lines, as Kafka's `sasl.jaas.config` has them: `module.Class required name="value" name2="value";`."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ottla.security.errors import SecuritySettingError

__all__ = ["JaasEntry", "read_jaas"]

_WORD: Final = re.compile(r"\s*([\w.$]+)")
_OPTION: Final = re.compile(r"\s*([\w.$@+-]+)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([^\s;\"']+))")
_END: Final = re.compile(r"\s*;?\s*")
_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})


class JaasEntry(NamedTuple):
    """One login module and its options."""

    module: str
    options: dict[str, str]

    @property
    def users(self) -> dict[str, str]:
        """The passwords in `user_NAME` options."""
        return {name[5:]: value for name, value in self.options.items() if name.startswith("user_")}


def read_jaas(setting: str, text: str) -> JaasEntry:
    """The entry in a setting. SecuritySettingError does not repeat what the line holds: passwords may be in it."""
    module = _WORD.match(text)
    flag = module and _WORD.match(text, module.end())
    if module is None or flag is None or flag[1].lower() not in _FLAGS:
        raise SecuritySettingError(f'{setting} is malformed; write module.Class required name="value";')
    options: dict[str, str] = {}
    at = flag.end()
    while option := _OPTION.match(text, at):
        name, *values = option.groups()
        value = next(each for each in values if each is not None)
        options[name] = value if values[2] is not None else re.sub(r"\\(.)", r"\1", value)
        at = option.end()
    if _END.fullmatch(text, at) is None:
        place = f"after option {next(reversed(options))}" if options else f"after {flag[1]}"
        raise SecuritySettingError(f"{setting} cannot be read {place}; quote values, and end the line with ;")
    return JaasEntry(module[1], options)
