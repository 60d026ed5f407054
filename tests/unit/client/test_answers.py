"""The types of answers are those of the schemas, and the run-time `send` is the typed one."""

import inspect

from ottla.client.answers import TypedSend
from ottla.wire.frames import api_names
from tools.generate_types import ANSWERS, generate


def test_every_request_has_its_answer():
    text = ANSWERS.read_text(encoding="utf-8")
    assert generate()[ANSWERS] == text, "run make generate"
    assert text.count("@overload") == len(api_names()) + 1


def test_the_documented_method_is_the_one_that_runs():
    assert inspect.iscoroutinefunction(TypedSend.send)
    assert "highest version" in (TypedSend.send.__doc__ or "")
