"""`ottla proxy` as a process: it gets ready, shows what passes, and ends with the sums."""

import asyncio
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ottla.cli import run
from ottla.wire import frames, types

TIME_LIMIT_S = 60
SECRET = b"\0me\0correct horse"


class Ended:
    """What a proxy left behind."""

    def __init__(self, out: bytes, notes: str, code: int | None) -> None:
        self.lines = out.decode().splitlines()
        self.messages = [json.loads(line) for line in self.lines if line.startswith("{")]
        self.notes = notes.splitlines()
        self.code = code


async def broker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers what the tests ask, on whatever address it is; an unknown API with a bare header."""
    port = writer.get_extra_info("sockname")[1]
    while size := await reader.read(4):
        data = await reader.readexactly(int.from_bytes(size))
        key, version, correlation_id = (int.from_bytes(data[a:b]) for a, b in ((0, 2), (2, 4), (4, 8)))
        node = types.MetadataResponse.MetadataResponseBroker(3, "localhost", port)
        answers: dict[int, Any] = {
            3: types.MetadataResponse(brokers=(node,)),
            12: types.HeartbeatResponse(error_code=27),
            36: types.SaslAuthenticateResponse(auth_bytes=SECRET),
        }
        if key in answers:
            writer.write(frames.write_response(answers[key], version, correlation_id=correlation_id))
        else:
            writer.write(frames.frame(data[4:8]))
    writer.close()


Client = Callable[[str, int], Awaitable[None]]


def proxied(client: Client, *options: str, end: signal.Signals = signal.SIGINT) -> Ended:
    """Run a proxy before the broker above, and a client that gets the proxy's address."""

    async def body() -> Ended:
        server = await asyncio.start_server(broker, "127.0.0.1", 0)
        target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        command = ("-m", "ottla", "proxy", "--listen", "0", "--to", target, *options)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=pipe, stderr=pipe)
        assert process.stderr is not None
        ready = (await process.stderr.readline()).decode()
        assert ready.startswith("ottla proxy ready "), ready + (await process.stderr.read()).decode()
        host, _, port = ready.split()[3].rpartition(":")
        try:
            await client(host, int(port))
            process.send_signal(end)
            out, notes = await process.communicate()
        finally:
            server.close()
            if process.returncode is None:
                process.kill()
        return Ended(out, notes.decode(), process.returncode)

    async def bounded() -> Ended:
        async with asyncio.timeout(TIME_LIMIT_S):
            return await body()

    return asyncio.run(bounded())


async def converse(host: str, port: int, *requests: bytes) -> list[bytes]:
    """Send requests one after the other on one connection; the answers without their sizes."""
    reader, writer = await asyncio.open_connection(host, port)
    answers = []
    try:
        for each in requests:
            writer.write(each)
            answers.append(await reader.readexactly(int.from_bytes(await reader.readexactly(4))))
    finally:
        writer.close()
    await writer.wait_closed()
    return answers


def request(message: Any, version: int, correlation_id: int, client_id: str = "me") -> bytes:
    return frames.write_request(message, version, correlation_id=correlation_id, client_id=client_id)


async def talk(host: str, port: int) -> None:
    heartbeat = types.HeartbeatRequest(group_id="orders-app")
    metadata, _, _ = await converse(
        host,
        port,
        request(types.MetadataRequest(), 12, 1),
        request(heartbeat, 4, 2),
        request(types.SaslAuthenticateRequest(auth_bytes=SECRET), 2, 3),
    )
    (node,) = frames.read_response(metadata, 3, 12).body.brokers
    assert (node.host, node.port) != (host, port)
    await converse(
        node.host, node.port, request(heartbeat, 4, 1, "other"), frames.frame(b"\x03\xe7\0\0\0\0\0\x05\xff\xff")
    )


def test_lines_and_sums():
    ended = proxied(talk)
    assert ended.code == 0
    shown = [line.split("  ", 1)[1] for line in ended.lines]
    assert [line.split()[0] for line in shown] == ["#1", "#1", "#1", "#2", "#2"]
    assert "Heartbeat v4" in shown[1]
    assert "REBALANCE_IN_PROGRESS" in shown[1]
    assert "Api999 v0" in shown[4]
    assert ended.notes[0].startswith("node 3 (localhost:")
    table = {line.split()[0]: line.split() for line in ended.notes[2:-1]}
    assert table["Heartbeat"][1:3] == ["2", "0"]
    assert table["Heartbeat"][-2:] == ["REBALANCE_IN_PROGRESS", "×2"]
    assert ended.notes[-1] == "5 exchanges on 2 connections, 2 messages could not be read"


def test_sigterm_ends_it_as_well():
    assert proxied(talk, end=signal.SIGTERM).code == 0


def test_json_has_one_object_per_message():
    ended = proxied(talk, "--json")
    kinds = [(message["connection"], message["api"], message["kind"]) for message in ended.messages]
    assert kinds[:2] == [(1, "Metadata", "request"), (1, "Metadata", "response")]
    assert kinds[-2:] == [(2, "Api999", "request"), (2, "Api999", "response")]
    assert ended.messages[3]["errors"] == {"REBALANCE_IN_PROGRESS": 1}
    assert (
        ended.messages[1]["body"]["brokers"][0]["host"] == "localhost"
    )  # what the broker said, not what the client got
    assert len(ended.messages) == len(ended.lines) == 10


def test_verbose_and_filtered():
    ended = proxied(talk, "-v", "--api", "heartbeat", "--client-id", "oth*")
    text = "\n".join(ended.lines)
    assert "HeartbeatRequest" in text
    assert "orders-app" in text
    assert "MetadataResponse" not in text
    assert ended.notes[-1] == "1 exchange on 2 connections, 4 filtered out"


def until_it_ends(rest_of_the_line: str) -> tuple[int | None, str]:
    """Talk to a proxy whose output goes elsewhere until it ends by itself: exit code and notes."""

    async def body() -> tuple[int | None, str]:
        server = await asyncio.start_server(broker, "127.0.0.1", 0)
        target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        # With `exec` the process is the proxy itself, which can be stopped should it not end.
        line = f"exec '{sys.executable}' -m ottla proxy --listen 0 --to {target} {rest_of_the_line}"
        process = await asyncio.create_subprocess_exec("/bin/bash", "-c", line, stderr=asyncio.subprocess.PIPE)
        try:
            assert process.stderr is not None
            ready = (await process.stderr.readline()).decode()
            host, _, port = ready.split()[3].rpartition(":")
            for number in range(1000):  # the first lines may be written before their reader has ended
                try:
                    await converse(host, int(port), request(types.HeartbeatRequest(), 4, number))
                except (OSError, asyncio.IncompleteReadError):
                    break
            _, notes = await process.communicate()
        finally:
            server.close()
            if process.returncode is None:
                process.kill()
        return process.returncode, notes.decode()

    async def bounded() -> tuple[int | None, str]:
        async with asyncio.timeout(TIME_LIMIT_S):
            return await body()

    return asyncio.run(bounded())


@pytest.mark.parametrize("option", ["", "--json"])
def test_a_closed_output_ends_it_quietly(option: str):
    code, notes = until_it_ends(f"{option} > >(true)")
    assert code == 0
    assert "Traceback" not in notes
    assert "exchange" in notes
    assert "cannot be written" not in notes


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a file that is always full")
def test_an_output_that_is_full_ends_it_with_a_reason():
    code, notes = until_it_ends("> /dev/full")
    assert code == 0
    assert "the output cannot be written: No space left on device" in notes
    assert "Traceback" not in notes


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--listen", "0", "--to", "kafka"), "--to 'kafka' has no port\n  → write HOST:PORT, for instance kafka:9092"),
        (("--listen", "http", "--to", "kafka:9092"), "--listen 'http': 'http' is not a port"),
        (
            ("--listen", "0", "--to", "kafka:9092", "--api", "Fetsch"),
            "unknown API 'Fetsch'\n  → did you mean Fetch?",
        ),
        (("--listen", "0", "--to", "nowhere.invalid:9092"), "--to nowhere.invalid:9092: the host cannot be found"),
        (("--listen", "192.0.2.1:0", "--to", "localhost:9092"), "cannot listen on 192.0.2.1:0"),
        (("--to", "localhost:9092"), "--listen"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]):
    assert run(["proxy", *arguments]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert len(captured.err.splitlines()) <= 2
    assert captured.out == ""


def test_a_capture_that_cannot_be_written_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "nowhere" / "saved.pcap"
    assert run(["proxy", "--listen", "0", "--to", "localhost:9092", "--save", str(path)]) == 2
    assert "No such file or directory" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a file that is always full")
def test_a_capture_that_ends_early_is_told_of():
    ended = proxied(talk, "--save", "/dev/full")
    assert ended.code == 0
    assert "the end of the capture cannot be written (No space left on device): /dev/full" in ended.notes
    assert len(ended.lines) == 5


def test_what_passed_is_saved(tmp_path: Path):
    path = tmp_path / "saved.pcap"
    ended = proxied(talk, "--save", str(path))
    assert any(line.endswith(f"packets saved in {path}") for line in ended.notes)
    assert b"orders-app" in path.read_bytes()
