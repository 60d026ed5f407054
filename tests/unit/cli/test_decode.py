"""`ottla decode` as it is typed."""

import base64
import io
import json
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.cli import run
from ottla.cli.decode import decode as command
from ottla.explain.exchanges import Side
from ottla.wire import frames, keyed, types
from ottla.wire.batch import Record, build_batch
from tests.unit.explain import packets as made
from tests.unit.explain import secrets
from tests.unit.explain.packets import Talk

FRAME = made.metadata_request(7, "orders")
BODY = FRAME[17:]


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


class Ottla:
    """Runs the command line as the shell would."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.capsys = capsys
        self.monkeypatch = monkeypatch

    def __call__(self, *words: str, stdin: bytes = b"") -> Outcome:
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run(["decode", *words])
        return Outcome(code, *self.capsys.readouterr())

    def refused(self, *words: str, stdin: bytes = b"") -> str:
        """The one line of a refusal."""
        outcome = self(*words, stdin=stdin)
        assert outcome.code == 2
        assert outcome.out == ""
        assert outcome.err.count("\n") <= 2
        return outcome.err.strip()

    def good(self, *words: str, stdin: bytes = b"") -> str:
        outcome = self(*words, stdin=stdin)
        assert outcome.code == 0, outcome.err
        return outcome.out


@pytest.fixture
def ottla(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ottla:
    monkeypatch.delenv("COLUMNS", raising=False)
    return Ottla(capsys, monkeypatch)


# --- one message ------------------------------------------------------------------------------------------------------


def test_a_frame_is_recognised_and_shown(ottla: Ottla):
    printed = ottla.good(FRAME.hex())
    assert printed.startswith("MetadataRequest v12, 45 bytes, after size and request header (guessed, certain)\n")
    assert 'Name: "orders"' in printed


@pytest.mark.parametrize("words", [["MetadataRequest", "12"], ["metadata", "v12"], ["Metadata", "12", "request"]])
def test_a_name_may_be_given_in_many_ways(ottla: Ottla, words: list[str]):
    printed = ottla.good(*words, BODY.hex())
    assert printed.startswith("MetadataRequest v12, 28 bytes (as named)\n")


def test_without_a_version_those_that_fit_are_named(ottla: Ottla):
    printed = ottla.good("MetadataRequest", BODY.hex())
    assert printed.startswith("MetadataRequest v11 to v13, 28 bytes (as named)\n")


def test_bytes_come_in_many_forms(ottla: Ottla, tmp_path: Path):
    raw, text = tmp_path / "frame.bin", tmp_path / "frame.hex"
    raw.write_bytes(FRAME)
    text.write_text(FRAME.hex(" "))
    printed = ottla.good(FRAME.hex())
    assert ottla.good(f"@{raw}") == printed
    assert ottla.good(f"@{text}") == printed
    assert ottla.good("-", stdin=FRAME) == printed
    assert ottla.good("-", stdin=FRAME.hex(":").encode()) == printed
    assert ottla.good(base64.b64encode(FRAME).decode()) == printed
    assert ottla.good(*FRAME.hex(" ").split()) == printed
    assert ottla.good("--as", "raw", f"@{raw}") == printed
    assert ottla.good("--as", "hex", FRAME.hex()) == printed


def test_half_a_message_shows_what_there_is_and_says_where_it_breaks(ottla: Ottla):
    outcome = ottla(FRAME[:-8].hex())
    assert outcome.code == 2
    assert "RequestApiKey: 3 Metadata" in outcome.out
    assert outcome.err.startswith(
        "ottla decode: MetadataRequest v12 is incomplete: MetadataRequest.Topics[0].Name at byte 35"
    )
    assert outcome.err.count("\n") == 1


def test_several_that_fit_are_named(ottla: Ottla):
    printed = ottla.good("00000000 00000000")
    assert "one of several that fit" in printed
    assert "could also be" in printed


def test_json_has_the_guess_the_content_and_the_places(ottla: Ottla):
    found = json.loads(ottla.good("--json", FRAME.hex()))
    assert (found["message"], found["version"], found["before"]) == ("MetadataRequest", 12, "request header")
    assert found["guess"]["phrase"] == "certain"
    assert found["body"]["topics"][0]["name"] == "orders"
    assert found["header"]["RequestHeader"]["clientId"] == "me"
    [size, header, body] = found["tree"]
    assert (size["end"], header["start"], body["end"]) == (4, 4, len(FRAME))
    assert (found["size_bytes"], found["has_size"]) == (len(FRAME), True)
    assert "error" not in found


def test_json_of_half_a_message_has_its_error(ottla: Ottla):
    outcome = ottla("--json", FRAME[:-8].hex())
    assert outcome.code == 2
    found = json.loads(outcome.out)
    assert found["body"] is None
    assert found["error"]["path"] == "MetadataRequest.Topics[0].Name"
    assert found["error"]["byte_offset"] == 35


def test_frames_one_after_the_other_are_shown_one_by_one(ottla: Ottla):
    printed = ottla.good("-", stdin=FRAME + made.heartbeat_request(8, "g") + made.metadata_response(7, "orders"))
    headings = [line.split(",")[0] for line in printed.splitlines() if "after size" in line]
    assert headings == ["MetadataRequest v12", "HeartbeatRequest v4", "MetadataResponse v11 to v12"]
    outcome = ottla("-", stdin=FRAME * 2 + FRAME[:-5])
    assert outcome.code == 2
    assert outcome.out.count("after size and request header") == 3


@pytest.mark.parametrize("version", [1, 2])
def test_a_header_alone_can_be_asked_for(ottla: Ottla, version: int):
    header = FRAME[4:17] if version == 2 else FRAME[4:16]
    assert 'ClientId: "me"' in ottla.good("RequestHeader", str(version), header.hex())


def test_verbose_shows_the_bytes_between_fields(ottla: Ottla):
    assert "tagged fields" not in ottla.good(FRAME.hex())
    assert "tagged fields: 0" in ottla.good("-v", FRAME.hex())


@pytest.mark.parametrize("width", [40, 80, 133])
def test_no_line_is_wider_than_asked_for(ottla: Ottla, width: int):
    lines = ottla.good("--width", str(width), FRAME.hex()).splitlines()
    assert max(map(len, lines)) <= width


def test_the_first_example_of_the_help_works(ottla: Ottla):
    assert command.help is not None
    [example, *_] = [line.split() for line in command.help.splitlines() if "ottla decode 0" in line]
    assert ottla.good(example[2]).startswith("ApiVersionsRequest v3, 28 bytes, after size and request header")


# --- record batches ---------------------------------------------------------------------------------------------------


def offsets_batch() -> bytes:
    key = keyed.encode_framed(types.OffsetCommitKey(group="orders-app", topic="orders", partition=3), 0)
    value = keyed.encode_framed(types.OffsetCommitValue(offset=42), 3)
    return build_batch([Record(0, 0, key, value)])


def test_a_segment_is_shown_batch_by_batch(ottla: Ottla, tmp_path: Path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(offsets_batch() * 3)
    printed = ottla.good(f"@{path}")
    assert printed.startswith("Record batches, ")
    assert printed.count("OffsetCommitValue v3") == 3
    assert ottla.good("RecordBatch", f"@{path}").count("OffsetCommitValue v3") == 3


def test_the_topic_says_what_records_are(ottla: Ottla):
    batch = build_batch([Record(0, 0, b"\x00\x02\x00\x01g", None)])
    assert "GroupMetadata, tombstone" in ottla.good(batch.hex(), "--topic", "__consumer_offsets")


def test_json_of_batches_is_one_line_each(ottla: Ottla):
    lines = ottla.good("--json", (offsets_batch() * 2).hex()).splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["Batch", "Batch"]


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["MetadataReqest", "12", "00"], "unknown name 'MetadataReqest'\n  → did you mean MetadataRequest?"),
        (
            ["MetadataRequest", "99", "00"],
            "MetadataRequest has no version 99\n  → it has 0 to 13, so the nearest is 13",
        ),
        (["NOT_COORDINATOR", "0", "00"], "NOT_COORDINATOR is an error, not a message"),
        (["001"], "3 hex digits are an odd number"),
        (["0g 00 00 00"], "character 2 is 'g'"),
        ([], "nothing to decode"),
        (["MetadataRequest"], "no bytes after 'MetadataRequest'"),
        (["@/no/such/file"], "cannot read /no/such/file: No such file or directory"),
        (["--pcap", "/no/such/file"], "cannot read /no/such/file: No such file or directory"),
        (["--pcap", "x.pcap", "00"], "'00' and --pcap cannot both be given"),
        (["--api", "Fetch", "00"], "--api filters a capture"),
        (["--pcap", "x.pcap", "--api", "Ftch"], "unknown API 'Ftch'\n  → did you mean Fetch?"),
        (["--port", "70000", "--pcap", "x"], "70000 is not in the range"),
        (["--topic", "a", "--topic", "b", "00"], "record batches belong to one topic"),
        (["--as", "hexx", "00"], "'hexx' is not one of"),
    ],
)
def test_bad_input_gets_one_line(ottla: Ottla, words: list[str], says: str):
    assert says in ottla.refused(*words)


def test_bytes_that_fit_nothing(ottla: Ottla):
    assert "40 bytes match no message" in ottla.refused("9e" * 40)


def test_a_misspelt_file_is_answered_with_the_nearest(ottla: Ottla, tmp_path: Path):
    (tmp_path / "traffic.pcap").touch()
    assert "did you mean" in ottla.refused("--pcap", str(tmp_path / "trafic.pcap"))
    assert "traffic.pcap" in ottla.refused("--pcap", str(tmp_path / "trafic.pcap"))


def test_an_empty_file_is_refused(ottla: Ottla, tmp_path: Path):
    path = tmp_path / "empty"
    path.touch()
    assert "no bytes to decode" in ottla.refused(f"@{path}")
    assert "the file is empty" in ottla.refused("--pcap", str(path))


def test_a_file_that_is_too_large_is_refused(ottla: Ottla, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ottla.cli.decode.input.INPUT_BYTES_MAX", 1 << 20)
    path = tmp_path / "large"
    path.write_bytes(bytes((1 << 20) + 1))
    assert "is larger than 1 MiB" in ottla.refused(f"@{path}")


def test_a_capture_given_as_bytes_is_sent_to_the_right_option(ottla: Ottla, capture: Path):
    assert f"decode it with --pcap {capture}" in ottla.refused(f"@{capture}")


def test_a_guess_that_may_be_a_secret_is_not_shown(ottla: Ottla):
    """Bare bytes that read as two messages of one layout, one of which holds a secret."""
    body = secrets.Case(types.RenewDelegationTokenRequest(hmac=secrets.SECRET, renew_period_ms=5), 2).body
    outcome = ottla(body.hex())
    assert not secrets.leaks(outcome.out + outcome.err)


# --- captures ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    talk = made.ask_and_answer(Talk().open(), 3)
    for number, group in ((10, "orders-app"), (11, "billing")):
        talk.say(Side.CLIENT, made.heartbeat_request(number, group, client_id=f"consumer-{group}"))
        talk.say(Side.BROKER, made.heartbeat_response(number, 27))
    path = tmp_path / "traffic.pcap"
    path.write_bytes(made.pcap(talk.close().packets))
    return path


def test_a_capture_is_a_line_per_exchange_and_a_last_word(ottla: Ottla, capture: Path):
    outcome = ottla("--pcap", str(capture))
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert len(lines) == 5
    assert "Metadata v12" in lines[0]
    assert "topic orders" in lines[0]
    assert "REBALANCE_IN_PROGRESS" in lines[3]
    assert outcome.err == "ottla decode: 5 exchanges on 1 connection, 16 packets\n"


def test_a_capture_may_come_from_standard_input(ottla: Ottla, capture: Path):
    assert len(ottla.good("--pcap", "-", stdin=capture.read_bytes()).splitlines()) == 5


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["--api", "heartbeat"], 2),
        (["--api", "Metadata", "--api", "12"], 5),
        (["--group", "orders-*"], 1),
        (["--client-id", "consumer-billing"], 1),
        (["--topic", "orders"], 3),
        (["--topic", "nothing"], 0),
        (["--port", "9092"], 5),
        (["--port", "9093"], 0),
    ],
)
def test_filters_choose(ottla: Ottla, capture: Path, words: list[str], count: int):
    assert len(ottla.good("--pcap", str(capture), *words).splitlines()) == count


def test_verbose_shows_every_field(ottla: Ottla, capture: Path):
    printed = ottla.good("--pcap", str(capture), "-v", "--group", "billing")
    assert 'GroupId: "billing"' in printed
    assert "ErrorCode: 27 REBALANCE_IN_PROGRESS" in printed


def test_json_is_a_line_per_message(ottla: Ottla, capture: Path):
    lines = [json.loads(line) for line in ottla.good("--pcap", str(capture), "--json").splitlines()]
    assert [line["kind"] for line in lines] == ["request", "response"] * 5
    assert lines[0]["body"]["topics"][0]["name"] == "orders"
    assert lines[1]["latency_ms"] == pytest.approx(1.0)


def test_a_cut_capture_shows_what_there_is_and_then_says_so(ottla: Ottla, capture: Path):
    cut = capture.with_name("cut.pcap")
    cut.write_bytes(capture.read_bytes()[:-30])
    outcome = ottla("--pcap", str(cut))
    assert outcome.code == 2
    assert len(outcome.out.splitlines()) == 5
    assert f"ottla: {cut} is cut off in a packet" in outcome.err
    assert "\n  → 5 exchanges before that are shown" in outcome.err
    assert outcome.err.count("\n") == 2


def test_what_is_no_capture_is_refused(ottla: Ottla, tmp_path: Path):
    path = tmp_path / "picture.gif"
    path.write_bytes(b"GIF89a" + bytes(40))
    assert "neither pcap nor pcapng" in ottla.refused("--pcap", str(path))


def test_a_link_that_is_not_understood_is_refused(ottla: Ottla, tmp_path: Path):
    path = tmp_path / "usb.pcap"
    path.write_bytes(made.pcap(Talk().open().packets, 189))
    assert "link type 189\n  → supported are" in ottla.refused("--pcap", str(path))


def test_silence_is_explained(ottla: Ottla, tmp_path: Path):
    talk = Talk().open().say(Side.CLIENT, b"\x16\x03\x01" + bytes(300))
    web = Talk(client=("10.0.0.1", 41_000), broker=("10.0.0.3", 80), packets=talk.packets).open()
    web.say(Side.CLIENT, b"GET / HTTP/1.1\r\n\r\n")
    path = tmp_path / "other.pcap"
    path.write_bytes(made.pcap(talk.packets))
    outcome = ottla("--pcap", str(path))
    assert outcome.code == 0
    assert "TLS: encrypted" in outcome.out
    assert "0 exchanges on 0 connections" in outcome.err
    assert "1 connection with TLS, not readable, 1 other TCP connection" in outcome.err


def test_losses_are_shown_and_summed_up(ottla: Ottla, tmp_path: Path):
    talk = made.ask_and_answer(Talk().open(), 40)
    del talk.packets[3 + 2 * 5]
    path = tmp_path / "lossy.pcap"
    path.write_bytes(made.pcap(talk.packets))
    outcome = ottla("--pcap", str(path))
    assert "45 bytes from the client are missing" in outcome.out
    assert "45 bytes missing" in outcome.err
    losses = [json.loads(line) for line in ottla.good("--pcap", str(path), "--json").splitlines()]
    assert [line["lost_bytes"] for line in losses if line["kind"] == "loss"] == [45]


@pytest.mark.parametrize(
    "words", [[], ["-v"], ["--json"], ["--json", "-v"]], ids=["lines", "blocks", "json", "json -v"]
)
def test_no_capture_gives_its_secrets_away(ottla: Ottla, tmp_path: Path, words: list[str]):
    talk = Talk().open()
    handshake = types.SaslHandshakeRequest(mechanism="PLAIN")
    talk.say(Side.CLIENT, frames.write_request(handshake, 0, correlation_id=1))
    talk.say(Side.BROKER, frames.write_response(types.SaslHandshakeResponse(), 0, correlation_id=1))
    talk.say(Side.CLIENT, frames.frame(b"\0alice\0" + secrets.SECRET)).say(Side.BROKER, frames.frame(secrets.SECRET))
    for case in secrets.CASES:
        kind = case.name[-7:]
        if kind == "Request":
            talk.say(Side.CLIENT, case.frame)
            continue
        request = getattr(types, case.name.removesuffix("Response") + "Request")()
        talk.say(Side.CLIENT, frames.write_request(request, case.version, correlation_id=9))
        talk.say(Side.BROKER, case.frame)
        talk.say(Side.BROKER, case.frame[:4] + b"\x00\x00\x10\x00" + case.frame[8:])  # without its request
    path = tmp_path / "secrets.pcap"
    path.write_bytes(made.pcap(talk.packets))
    outcome = ottla("--pcap", str(path), *words)
    assert outcome.code == 0
    assert "SaslAuthenticate" in outcome.out
    assert not secrets.leaks(outcome.out + outcome.err)


def test_a_reader_that_has_seen_enough_ends_it_quietly(ottla: Ottla, capture: Path, monkeypatch: pytest.MonkeyPatch):
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Closed())
    assert run(["decode", "--pcap", str(capture)]) == 0
