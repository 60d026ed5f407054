"""Reads the pages that ottla brokers serve over HTTP: metrics, and what share groups have in flight."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import quote, urlsplit
from urllib.request import ProxyHandler, build_opener

from ottla.client.client import Client
from ottla.client.configs import Resource, ResourceType, try_describe

__all__ = ["access_url", "inspect_addresses", "read_json", "read_page", "share_url"]

LISTENER_SETTING: Final = "ottla.inspect.listeners"
PATH: Final = "/inspect/v1/share/"
ACCESS_PATH: Final = "/inspect/v1/access"
TIMEOUT_S: Final = 10.0
PAGE_MAX_BYTES: Final = 64 * 1024 * 1024


async def inspect_addresses(client: Client) -> list[str]:
    """The addresses of the brokers' inspect listeners; brokers of Apache Kafka do not have the setting."""
    brokers = [Resource(ResourceType.BROKER, str(node_id)) for node_id in sorted(client.metadata.brokers)]
    outcomes = await try_describe(client, *brokers, keys=(LISTENER_SETTING,))
    entries = [
        each[LISTENER_SETTING] for each in outcomes.values() if isinstance(each, dict) and LISTENER_SETTING in each
    ]
    return [entry.value for entry in entries if entry.value and urlsplit(entry.value).scheme == "http"]


def share_url(address: str, group_id: str) -> str:
    return f"{address.rstrip('/')}{PATH}{quote(group_id, safe='')}"


def access_url(address: str) -> str:
    return f"{address.rstrip('/')}{ACCESS_PATH}"


async def read_json(url: str) -> Mapping[str, Any]:
    """The object on a page. OSError if it cannot be read."""
    try:
        found: Mapping[str, Any] = json.loads(await read_page(url))
    except ValueError as error:
        raise OSError(f"it is no JSON: {error}") from None
    return found


async def read_page(url: str, timeout_s: float = TIMEOUT_S) -> str:
    """The text of a page. OSError if it cannot be read."""
    return await asyncio.to_thread(_read, url, timeout_s)


def _read(url: str, timeout_s: float) -> str:
    opener = build_opener(ProxyHandler({}))  # it is on this machine, or near it
    try:
        with opener.open(url, timeout=timeout_s) as answer:
            data: bytes = answer.read(PAGE_MAX_BYTES)
    except URLError as error:
        raise OSError(str(error.reason)) from None
    return data.decode(errors="replace")
