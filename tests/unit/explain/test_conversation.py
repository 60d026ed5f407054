"""Errors, their meanings and who may answer with them."""

from ottla.explain.conversation import GENERAL_ERRORS, errors
from ottla.explain.page import plain
from ottla.wire.errors import ErrorCode, by_name
from ottla.wire.frames import api_names
from tests.unit.explain.page_list import error_pages, message_pages


def errors_of(api: str) -> dict[str, str]:
    return {row.name: plain(row.meaning) for row in errors(f"{api}Request")}


def test_every_error_on_a_page_exists_and_is_told_rightly():
    for page in message_pages():
        for row in page.errors:
            error = by_name(row.name)
            assert (row.code, row.retriable) == (error.value, error.retriable)
            assert plain(row.meaning), (page.title, row.name)


def test_no_error_is_listed_twice():
    for api in api_names().values():
        names = [row.name for row in errors(f"{api}Request")]
        assert len(names) == len(set(names)), api


def test_most_lists_differ():
    lists = {frozenset((row.name, row.reserved) for row in errors(f"{api}Request")) for api in api_names().values()}
    assert len(api_names()) == 91
    assert len(lists) >= 60


def test_every_api_may_answer_with_the_general_errors():
    for api in api_names().values():
        assert {error.name for error in GENERAL_ERRORS} <= set(errors_of(api)), api


def test_a_meaning_of_its_own_goes_before_the_general_one():
    (row,) = [row for row in errors("ShareFetchRequest") if row.name == "UNSUPPORTED_VERSION"]
    assert not row.general
    assert "share.version" in plain(row.meaning)
    (row,) = [row for row in errors("ShareFetchRequest") if row.name == "UNKNOWN_SERVER_ERROR"]
    assert row.general


def test_reserved_errors_come_last_and_are_marked():
    rows = errors("StreamsGroupHeartbeatResponse")
    marks = [row.reserved for row in rows]
    assert marks == sorted(marks)
    reserved = {row.name for row in rows if row.reserved}
    assert {"STREAMS_INVALID_TOPOLOGY_EPOCH", "STREAMS_TOPOLOGY_FENCED"} <= reserved
    assert "FENCED_STATE_EPOCH" in {row.name for row in errors("ShareFetchRequest") if row.reserved}


def test_the_meaning_depends_on_the_api():
    meanings = {
        errors_of(api)["INVALID_REQUEST"] for api in api_names().values() if "INVALID_REQUEST" in errors_of(api)
    }
    assert len(meanings) > 20


def test_records_and_headers_answer_nothing():
    assert errors("TopicRecord") == ()
    assert errors("RequestHeader") == ()


def test_error_pages_list_the_apis_that_name_them():
    by_page = {(page.name, use.api, use.reserved) for page in error_pages() for use in page.uses}
    by_api = {
        (row.name, api, row.reserved)
        for api in api_names().values()
        for row in errors(f"{api}Request")
        if not row.general
    }
    assert by_page == by_api
    for page in error_pages():
        keys = [use.api_key for use in page.uses]
        assert keys == sorted(keys)
        assert page.general == (ErrorCode(page.code) in GENERAL_ERRORS)


def test_error_pages_say_what_to_do():
    for page in error_pages():
        assert plain(page.meaning)
        assert plain(page.remedy)
