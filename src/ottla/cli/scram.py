"""SCRAM credentials in the syntax of kafka-storage: `SCRAM-SHA-256=[name=ann,password=secret,iterations=8192]`.

Instead of the password, its salted form can be given (`saltedpassword`, with `salt`); both are base64 then. The default
salt is random; the default number of iterations is 4096.
"""

from __future__ import annotations

import os
import re
from base64 import b64decode
from typing import Final

from ottla.cli.failure import Failure
from ottla.core.metadata.scram import ITERATIONS_MAX, ITERATIONS_MIN, MECHANISMS, credential_record, salted_password
from ottla.wire.keyed import Versioned

__all__ = ["credential"]

_FORM: Final = re.compile(r"([^=]+)=\[(.*)\]")
_PART: Final = re.compile(r'([a-z]+)=(?:"([^"]*)"|([^,]*))(?:,|$)')
_PARTS: Final = frozenset({"name", "password", "saltedpassword", "salt", "iterations"})
_SALT_BYTES: Final = 24


def credential(text: str) -> Versioned:
    """The record of a credential. Raises Failure if the text is not one."""
    form = _FORM.fullmatch(text)
    if form is None or form[1] not in MECHANISMS:
        known = " or ".join(MECHANISMS)
        raise Failure(f"'{_without_secrets(text)}' is not a credential", f"write {known}=[name=USER,password=PASSWORD]")
    mechanism, parts = MECHANISMS[form[1]], _parts(form[2])
    name, iterations = parts.get("name", ""), _iterations(parts.get("iterations", str(ITERATIONS_MIN)))
    if not name:
        raise Failure(f"a {form[1]} credential has no name", "add name=USER")
    if ("password" in parts) == ("saltedpassword" in parts):
        raise Failure(f"the credential of {name} needs a password", "give either password or saltedpassword")
    if "saltedpassword" in parts and "salt" not in parts:
        raise Failure(f"the credential of {name} has a salted password but no salt", "add salt=BASE64")
    salt = _decoded(parts["salt"], "salt") if "salt" in parts else os.urandom(_SALT_BYTES)
    if "password" in parts:
        salted = salted_password(mechanism, parts["password"], salt, iterations)
    else:
        salted = _decoded(parts["saltedpassword"], "saltedpassword")
    return credential_record(name, mechanism, iterations, salt, salted)


def _parts(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    at = 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[1] not in _PARTS or part[1] in parts:
            raise Failure("malformed credential", f"its parts are {', '.join(sorted(_PARTS))}, once each")
        parts[part[1]] = part[2] if part[2] is not None else part[3]
        at = part.end()
    return parts


def _iterations(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and ITERATIONS_MIN <= int(text) <= ITERATIONS_MAX):
        raise Failure(f"iterations={text} is not between {ITERATIONS_MIN} and {ITERATIONS_MAX}")
    return int(text)


def _decoded(text: str, name: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise Failure(f"{name} of a credential is not base64") from None


def _without_secrets(text: str) -> str:
    return text.partition("=")[0]
