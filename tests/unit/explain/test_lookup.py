"""From what a person types to pages."""

import pytest

from ottla.explain import NotFound, catalogue, find, find_error
from ottla.explain.page import PageRef
from ottla.wire import names
from ottla.wire.errors import ErrorCode
from ottla.wire.frames import api_names


@pytest.mark.parametrize(
    ("words", "refs"),
    [
        (["ShareFetch", "2"], [("ShareFetch", "request", 2), ("ShareFetch", "response", 2)]),
        (["sharefetch"], [("ShareFetch", "request", 2), ("ShareFetch", "response", 2)]),
        (["SHARE_FETCH", "v1", "REQUEST"], [("ShareFetch", "request", 1)]),
        (["share-fetch", "response", "1"], [("ShareFetch", "response", 1)]),
        (["ShareFetchRequest"], [("ShareFetch", "request", 2)]),
        (["78", "2", "request"], [("ShareFetch", "request", 2)]),
        (["InitProducerId", "request"], [("InitProducerId", "request", 5)]),
        (["InitProducerId", "6", "request"], [("InitProducerId", "request", 6)]),
        (["StreamsGroupMetadataValue"], [("StreamsGroupMetadataValue", None, 0)]),
        (["streamsgroupmetadata"], [("StreamsGroupMetadataKey", None, 0), ("StreamsGroupMetadataValue", None, 0)]),
        (["requestheader", "1"], [("RequestHeader", None, 1)]),
        (["TopicRecord"], [("TopicRecord", None, 0)]),
    ],
)
def test_names_versions_and_parts(words: list[str], refs: list[tuple[str, str | None, int]]):
    assert [(ref.name, ref.part, ref.version) for ref in find(words)] == refs


@pytest.mark.parametrize(
    "words",
    [
        ["FENCED_MEMBER_EPOCH"],
        ["fenced-member-epoch"],
        ["FencedMemberEpochException"],
        ["error", "110"],
        ["error", "FENCED_MEMBER_EPOCH"],
    ],
)
def test_errors_by_name_exception_and_code(words: list[str]):
    assert find(words) == (PageRef("error", "FENCED_MEMBER_EPOCH"),)


def test_a_number_is_an_api_key_first():
    assert find(["42"])[0].name == "DeleteGroups"
    assert find_error("42").name == "INVALID_REQUEST"
    assert find_error("-1").name == "UNKNOWN_SERVER_ERROR"


@pytest.mark.parametrize(
    ("words", "problem", "advice"),
    [
        (["SharFetch"], "unknown name 'SharFetch'", "did you mean ShareFetch?"),
        (["FENCED_MEMBR_EPOCH"], "unknown name 'FENCED_MEMBR_EPOCH'", "did you mean FENCED_MEMBER_EPOCH?"),
        (["#"], "unknown name '#'", "'ottla explain' lists all names"),
        (["ShareFetch", "0"], "ShareFetchRequest has no version 0", "it has 1 to 2, so the nearest is 1"),
        (["ShareFetch", "9"], "ShareFetchRequest has no version 9", "it has 1 to 2, so the nearest is 2"),
        (["TopicRecord", "3"], "TopicRecord has no version 3", "it has 0 only, so the nearest is 0"),
        (["ShareFetch", "reqest"], "'reqest' is neither a version nor a part", "did you mean request?"),
        (["TopicRecord", "request"], "TopicRecord is not an API and has no request", "omit 'request'"),
        (
            ["ShareFetchRequest", "response"],
            "ShareFetchRequest is a request and has no response",
            "use ShareFetch response",
        ),
        (["5"], "no API has the key 5", "the nearest is 3 (Metadata); errors need --error"),
        (
            ["FENCED_MEMBER_EPOCH", "1"],
            "FENCED_MEMBER_EPOCH is an error and has neither versions nor parts",
            "omit '1'",
        ),
        (["error", "110", "1"], "'1' is not allowed after an error", "an error has one page"),
        (["error", "999"], "no Kafka error has the code 999", "codes go from -1 to 136"),
        (["error", "NOT_CORDINATOR"], "unknown Kafka error 'NOT_CORDINATOR'", "did you mean NOT_COORDINATOR?"),
    ],
)
def test_what_is_not_there_is_refused_with_the_nearest(words: list[str], problem: str, advice: str):
    with pytest.raises(NotFound) as refusal:
        find(words)
    assert (refusal.value.problem, refusal.value.advice) == (problem, advice)
    assert str(refusal.value) == f"{problem}; {advice}"


@pytest.mark.parametrize("name", names())
def test_every_message_is_found_by_its_own_name(name: str):
    (ref,) = find([name.upper()])
    assert (ref.name if ref.part is None else f"{ref.name}{ref.part.capitalize()}") == name


def test_the_catalogue_lists_everything_once():
    sections = catalogue()
    listed = [row.name for section in sections for row in section.rows]
    assert len(listed) == len(set(listed))
    records = {name for name in names() if not name.endswith(("Request", "Response"))}
    assert set(listed) == set(api_names().values()) | records | set(ErrorCode.__members__)
    for section in sections:
        for row in section.rows:
            assert row.summary, row.name
            assert find([row.name])
