"""A Java program made of the library's own request classes, told what to say line by line."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.interop import process
from tests.interop.compiling import class_files
from tests.interop.jars import CLIENTS_4_4, classpath
from tests.interop.process import ProgramFailed

SOURCES = Path(__file__).parent / "java"
_QUIET = {"org.slf4j.simpleLogger.defaultLogLevel": "off"}


class Talk:
    """`say` sends a command and gives the answer; `begin` and `end` do it in two steps."""

    def __init__(self, port: int) -> None:
        classes = class_files("description-talk-classes", sorted(SOURCES.rglob("*.java")), CLIENTS_4_4)
        command = process.java(
            classpath(CLIENTS_4_4, classes),
            "descriptions.Talk",
            "127.0.0.1",
            str(port),
            options=process.QUICK_START,
            properties=_QUIET,
        )
        self._process = subprocess.Popen(
            process.tied(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def say(self, command: str) -> str:
        self.begin(command)
        return self.end()

    def begin(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def end(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ProgramFailed("descriptions.Talk", "ended", self._process.communicate()[1])
        return line.rstrip("\n")

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
