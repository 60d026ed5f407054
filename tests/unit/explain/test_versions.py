"""What each version changed, computed from the layouts and told by the notes."""

from ottla.explain.page import FieldChange, VersionRow, plain
from ottla.explain.versions import FLEXIBLE_DETAIL, version_rows
from ottla.wire.compile import message_shape
from ottla.wire.index import MESSAGES
from tests.unit.explain.page_list import message_pages


def row(name: str, version: int) -> VersionRow:
    (found,) = [row for row in version_rows(name, version) if row.version == version]
    return found


def test_newest_first_and_the_shown_one_is_marked():
    rows = version_rows("FetchRequest", 12)
    assert [row.version for row in rows] == list(range(18, 3, -1))
    assert [row.version for row in rows if row.shown] == [12]


def test_fields_that_came():
    assert row("ShareFetchRequest", 2).changes == (
        FieldChange("added", "ShareFetchRequest.ShareAcquireMode", "int8 = 0"),
        FieldChange("added", "ShareFetchRequest.IsRenewAck", "bool = false"),
    )


def test_fields_that_went():
    changes = row("ProduceRequest", 13).changes
    assert FieldChange("removed", "ProduceRequest.TopicData[].Name", "string (topicName)") in changes
    assert FieldChange("added", "ProduceRequest.TopicData[].TopicId", "uuid") in changes


def test_a_new_struct_is_named_once():
    changes = row("StreamsGroupDescribeResponse", 1).changes
    assert [change.path.rpartition(".")[2] for change in changes] == [
        "TopologyDescription",
        "TopologyDescriptionStatus",
        "AssignorName",
    ]


def test_nullable_and_type_changes():
    assert any(
        change.kind == "changed" and "nullable" in change.detail for change in row("JoinGroupResponse", 7).changes
    )


def test_the_first_flexible_version_says_so_once():
    changes = row("FetchRequest", 12).changes
    assert [change for change in changes if change.detail == FLEXIBLE_DETAIL] == [
        FieldChange("changed", "FetchRequest", FLEXIBLE_DETAIL)
    ]
    assert not any("compact" in change.detail for change in changes if change.path != "FetchRequest")


def test_the_oldest_version_has_nothing_to_compare_with():
    for page in message_pages():
        assert page.version_rows[-1].changes == ()


def test_a_change_without_a_note_is_shown_all_the_same():
    """The computed differences cover every version whose layout differs from the one before."""
    for name, entry in MESSAGES.items():
        rows = {row.version: row for row in version_rows(name, entry.high)}
        for version in range(entry.low + 1, entry.high + 1):
            same = _layout(name, version) == _layout(name, version - 1)
            assert same == (rows[version].changes == ()), (name, version)


def _layout(name: str, version: int) -> str:
    """The shape as text, without what the schema says about other versions."""
    shape = message_shape(name, version)

    def text(struct: object) -> str:
        members = [
            f"{member.name}:{member.tag}:{kind(member.type)}"
            for member in (*struct.plain, *struct.tagged)  # type: ignore[attr-defined]
        ]
        return f"{{{struct.flexible};{','.join(sorted(members))}}}"  # type: ignore[attr-defined]

    def kind(shape: object) -> str:
        inner = shape.element or shape  # type: ignore[attr-defined]
        struct = inner.struct
        return f"{shape.kind}/{inner.kind}?{shape.nullable}{text(struct) if struct else ''}"  # type: ignore[attr-defined]

    return text(shape)


def test_notes_come_from_the_schema():
    (note,) = row("ShareFetchRequest", 2).notes
    assert "KIP-1206" in plain(note)
