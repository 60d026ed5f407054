"""What becomes of errors that handlers raise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from ottla.broker.network.dispatch import Api, Dispatch
from ottla.broker.network.request import Request
from ottla.log.errors import LogError
from ottla.wire.errors import ErrorCode
from ottla.wire.reject import Reject


def refused(error: Exception) -> tuple[int, str | None]:
    """The code and the message of the answer of an API whose handler raises this."""

    def handle(node: Any, request: Request) -> Any:
        raise error

    api = Api(93, "Some", 0, 0, handle, lambda _, code, message: (code, message))
    dispatch = Dispatch(SimpleNamespace(), lambda key, is_unstable: api)
    return cast(tuple[int, str | None], dispatch.call(api, cast(Request, SimpleNamespace(version=0))))


def test_message_of_a_refusal_is_told_as_it_is() -> None:
    assert refused(Reject(ErrorCode.INVALID_REQUEST, "MemberId is blank")) == (42, "MemberId is blank")


def test_refusal_without_a_message_leaves_the_words_to_the_client() -> None:
    assert refused(Reject(ErrorCode.GROUP_AUTHORIZATION_FAILED)) == (30, None)


def test_words_of_other_errors_with_a_code_are_told() -> None:
    assert refused(LogError("the log is full")) == (LogError("").code, "the log is full")


def test_mistake_is_told_without_words(caplog: pytest.LogCaptureFixture) -> None:
    assert refused(KeyError("secret")) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert "Some v0 failed" in caplog.text
