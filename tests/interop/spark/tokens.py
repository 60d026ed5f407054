"""A token as Apache Kafka's unsecured validator takes it, for development and for tests."""

import base64
import json
import time


def alice() -> str:
    now_s = time.time()
    parts = ({"alg": "none"}, {"sub": "alice", "iat": now_s, "exp": now_s + 300})
    return ".".join([*(_base64(json.dumps(part).encode()) for part in parts), ""])


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
