"""The programs that read one topic and write another in transactions: `flow` and Java's `TransactionalFlow`."""

from __future__ import annotations

import sys

from tests.interop import process
from tests.interop.jars import classpath
from tests.interop.programs import JARS, compiled

JAVA, LIBRDKAFKA = CLIENTS = ("java", "librdkafka")


def flow_command(client: str, *arguments: str) -> list[str]:
    """BOOTSTRAP FROM TO GROUP TRANSACTIONAL_ID SEED"""
    if client == LIBRDKAFKA:
        return [sys.executable, "-m", "tests.interop.transactions.flow", *arguments]
    path = classpath(JARS["4.3.1"], compiled("4.3.1"))
    quiet = {"org.slf4j.simpleLogger.defaultLogLevel": "warn"}
    return process.java(path, "interop.TransactionalFlow", *arguments, options=process.QUICK_START, properties=quiet)
