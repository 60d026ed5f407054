"""The decoder refuses what is too large for a page."""

from ottla.console.pages.decode import INPUT_MAX_BYTES, decoded


def test_too_much_is_refused_and_not_sent_back():
    found = decoded("00" * (INPUT_MAX_BYTES + 1), "")
    assert (found.size, found.rows, found.text) == (INPUT_MAX_BYTES + 1, [], "")
    assert found.error == "that is 1.0 MiB; the page takes 1.0 MiB, ottla decode takes any file"
    assert decoded("00" * 8, "").text
