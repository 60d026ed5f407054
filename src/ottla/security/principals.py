"""Users from the distinguished names in TLS certificates, by `ssl.principal.mapping.rules`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ottla.security.errors import LoginRefused, SecuritySettingError

__all__ = ["mapping_rules"]

_RULE: Final = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")


def mapping_rules(text: str) -> Callable[[str], str]:
    """How the name in a certificate becomes a user: the first rule whose pattern matches the whole name.

    A rule is `RULE:pattern/replacement/` with L or U behind it for lower or upper case, or DEFAULT for the name as it
    is; the setting is `ssl.principal.mapping.rules`.
    """
    rules: list[tuple[re.Pattern[str] | None, str, str]] = []
    at = 0
    text = text.strip()
    while at < len(text):
        rule = _RULE.match(text, at)
        if rule is None:
            raise SecuritySettingError(
                f"ssl.principal.mapping.rules cannot be read at {text[at : at + 40]!r}; "
                f"a rule is RULE:pattern/replacement/[LU] or DEFAULT"
            )
        rules.append((None, "", "") if rule[1] else _compiled(rule[2], rule[3], rule[4]))
        at = rule.end()
    if not rules:
        rules.append((None, "", ""))

    def user(name: str) -> str:
        for pattern, replacement, case in rules:
            if pattern is None:
                return name
            found = pattern.fullmatch(name)
            if found is not None:
                made = found.expand(replacement)
                return made.lower() if case == "L" else made.upper() if case == "U" else made
        raise LoginRefused(f"no rule of ssl.principal.mapping.rules matches the certificate of {name}")

    return user


def _compiled(pattern: str, replacement: str, case: str) -> tuple[re.Pattern[str], str, str]:
    try:
        compiled = re.compile(pattern.replace("\\/", "/"))
        template = re.sub(r"\$(\d)", r"\\g<\1>", replacement.replace("\\/", "/").replace("\\", "\\\\"))
        compiled.sub(template, "")
    except (re.error, IndexError) as error:
        raise SecuritySettingError(f"ssl.principal.mapping.rules has {pattern!r}: {error}") from None
    return compiled, template, case
