"""The types of answers are those of the schemas, and the run-time `send` is the typed one."""

import inspect

from ottla.client.answers import TypedSend
from tests.unit.client.answers_text import FILE, requests, rewritten


def test_every_request_has_its_answer():
    text = FILE.read_text()
    assert rewritten(text) == text, "run python -m tests.unit.client.answers_text"
    assert text.count("@overload") == len(requests()) + 1


def test_the_documented_method_is_the_one_that_runs():
    assert inspect.iscoroutinefunction(TypedSend.send)
    assert "highest version" in (TypedSend.send.__doc__ or "")
