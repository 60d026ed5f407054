"""Annotated hex: rows, groups and labels."""

from ottla.explain.hexview import ROW_BYTES, Group, groups, rows
from tests.unit.explain.page_list import message_pages, page_of


def labels(name: str, version: int) -> list[tuple[int, str, str]]:
    return [(group.depth, group.label, group.value) for group in groups(page_of(name, version).example)]


def test_rows_hold_all_bytes_in_order_and_at_most_sixteen():
    for page in message_pages():
        at = 0
        data = page.example.data
        for _, found in rows(page.example):
            for row in found:
                assert row.offset == at
                assert 1 <= len(row.cells) <= ROW_BYTES
                assert bytes(cell.byte for cell in row.cells) == data[at : at + len(row.cells)]
                at += len(row.cells)
        assert at == len(data)


def test_a_narrow_view_has_shorter_rows():
    example = page_of("ShareFetchRequest", 2).example
    assert max(len(row.cells) for _, found in rows(example, row_bytes=8) for row in found) == 8


def test_length_and_value_are_one_field():
    (group,) = [group for group in groups(page_of("ShareFetchRequest", 2).example) if group.label == "GroupId"]
    assert [span.role for span in group.spans] == ["length", "value"]
    assert group.value == '"orders-workers"'


def test_only_values_are_bright():
    (found,) = [
        row
        for group, found in rows(page_of("ShareFetchRequest", 2).example)
        if group.label == "GroupId"
        for row in found
    ]
    assert [cell.is_value for cell in found.cells] == [False] + [True] * len("orders-workers")
    assert len({cell.hue for cell in found.cells}) == 1


def test_labels_are_indented_and_name_elements_by_index():
    found = labels("ShareFetchRequest", 2)
    assert (0, "Topics", "×1") in found
    assert (1, "[0].TopicId", "m0yAeplmTTWyHn60p7yucg") in found
    assert (3, "[0].AcknowledgeTypes", "[1, 3, 1]") in found
    assert (0, "tagged fields", "") in found
    assert (1, "[0].tagged fields", "") in found


def test_a_struct_that_is_no_element_goes_by_its_name():
    assert (2, "[0].CurrentLeader.LeaderId", "0") in labels("ShareFetchResponse", 2)


def test_nulls_empties_and_opened_records_say_so():
    found = labels("ShareFetchResponse", 2)
    assert (0, "ErrorMessage", "null") in found
    assert (0, "NodeEndpoints", "[]") in found
    assert any(label == "[0].Records" and value.endswith(" bytes") for _, label, value in found)
    assert any(label == "Batch[0].BaseOffset" and value == "4120" for _, label, value in found)
    assert (0, "CommittedMetadata", "empty") in [
        (0, label[4:], value) for _, label, value in labels("OffsetCommitRequest", 9)
    ]


def test_numbers_say_what_they_stand_for():
    found = {label: value for _, label, value in labels("ShareFetchRequest", 2)}
    assert found["RequestApiKey"] == "78 (ShareFetch)"
    found = {label: value for _, label, value in labels("ShareFetchResponse", 2)}
    assert found["ErrorCode"] == "0 (NONE)"
    assert found["Batch[0].BaseTimestamp"] == "1767261598000 (2026-01-01 09:59:58 UTC)"


def test_every_group_has_a_label():
    for page in message_pages():
        for group in groups(page.example):
            assert isinstance(group, Group)
            assert group.label, page.title
