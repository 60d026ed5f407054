"""Bytes as people paste them."""

import base64

import pytest

from ottla.explain.input_text import InputError, bytes_from_text, bytes_of

DATA = bytes(range(40)) + b"hello world!"

XXD = """\
00000000: 0001 0203 0405 0607 0809 0a0b 0c0d 0e0f  ................
00000010: 1011 1213 1415 1617 1819 1a1b 1c1d 1e1f  ................
00000020: 2021 2223 2425 2627 6865 6c6c 6f20 776f   !"#$%&'hello wo
00000030: 726c 6421                                rld!
"""
HEXDUMP = """\
00000000  00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f  |................|
00000010  10 11 12 13 14 15 16 17  18 19 1a 1b 1c 1d 1e 1f  |................|
00000020  20 21 22 23 24 25 26 27  68 65 6c 6c 6f 20 77 6f  | !"#$%&'hello wo|
00000030  72 6c 64 21                                       |rld!|
00000034
"""
OD = """\
000000 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f
000010 10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d 1e 1f
000020 20 21 22 23 24 25 26 27 68 65 6c 6c 6f 20 77 6f
000030 72 6c 64 21
000034
"""
TCPDUMP = """\
\t0x0000:  0001 0203 0405 0607 0809 0a0b 0c0d 0e0f  ................
\t0x0010:  1011 1213 1415 1617 1819 1a1b 1c1d 1e1f  ................
\t0x0020:  2021 2223 2425 2627 6865 6c6c 6f20 776f  .!"#$%&'hello.wo
\t0x0030:  726c 6421                                rld!
"""


@pytest.mark.parametrize("dump", [XXD, HEXDUMP, OD, TCPDUMP], ids=["xxd", "hexdump", "od", "tcpdump"])
def test_dumps_lose_their_offsets_and_texts(dump: str):
    assert bytes_from_text(dump) == DATA


@pytest.mark.parametrize(
    "text",
    [
        "00010aff",
        "00 01 0A FF",
        "00:01:0a:ff",
        "0x00 0x01 0x0a 0xff",
        "0x00010aff",
        r"\x00\x01\x0a\xff",
        "00, 01, 0a, ff",
        "00-01-0a-ff",
        "0001 0aff",
        "0001\n0aff\n",
        "0x0001 0aff",
    ],
)
def test_hex_in_all_its_guises(text: str):
    assert bytes_from_text(text) == b"\x00\x01\x0a\xff"


@pytest.mark.parametrize(
    "text", ["0000 0028 0003 000c", "00000028 00 03 00 0c", "00000028 0003000c"], ids=["pairs", "size", "words"]
)
def test_the_first_bytes_of_a_frame_are_not_taken_for_an_offset(text: str):
    assert bytes_from_text(text) == bytes.fromhex("000000280003000c")


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("padding", [True, False])
def test_base64_of_both_kinds(encode: object, padding: bool):
    raw = b"\xfb\xff\xfe and more to make it long enough"
    text = encode(raw).decode()  # type: ignore[operator]
    assert bytes_from_text(text if padding else text.rstrip("=")) == raw


def test_what_is_hex_and_base64_is_hex():
    assert bytes_from_text("deadbeef") == b"\xde\xad\xbe\xef"
    assert bytes_from_text("deadbeef", "base64") == base64.b64decode("deadbeef")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("001", "3 hex digits are an odd number"),
        ("00 01 0g 02 03 04", "character 8 is 'g'"),
        ("", "no bytes to decode"),
        ("  \n", "no bytes to decode"),
        ("000102030405060708090a0b0c0d0e0z", "character 32 is 'z'"),
    ],
)
def test_what_is_wrong_is_named(text: str, says: str):
    with pytest.raises(InputError, match=says):
        bytes_from_text(text)


def test_bad_base64_is_refused_where_base64_was_said():
    with pytest.raises(InputError, match="not base64"):
        bytes_from_text("abc$", "base64")


def test_files_may_hold_the_bytes_or_a_text_of_them():
    assert bytes_of(b"\x00\x01\xff") == b"\x00\x01\xff"
    assert bytes_of(b"0001ff\n") == b"\x00\x01\xff"
    assert bytes_of(b"0001ff", "raw") == b"0001ff"
    assert bytes_of(XXD.encode()) == DATA


def test_bytes_that_are_no_text_are_refused_where_text_was_said():
    with pytest.raises(InputError, match="byte 1 is 0x01, which is not text"):
        bytes_of(b"0\x01", "hex")


def test_raw_bytes_of_a_command_line_need_not_be_text():
    assert bytes_from_text("a\udcff", "raw") == b"a\xff"
