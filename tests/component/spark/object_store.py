"""An S3 server on this machine, which remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import s3fs
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "logs"
SECRET_BUCKET = "secret"
"""Nobody may read it."""
REFUSAL = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


class ObjectStore:
    """Objects in one bucket."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.asked: list[str] = []
        """Method, path and range of each request."""
        self._files = s3fs.S3FileSystem(endpoint_url=endpoint, key="k", secret="s", skip_instance_cache=True)

    def put(self, directory: Path, name: str) -> None:
        """Store all files of a directory under a name."""
        self._files.mkdirs(BUCKET, exist_ok=True)
        for path in directory.rglob("*"):
            if path.is_file():
                self._files.pipe_file(f"{BUCKET}/{name}/{path.relative_to(directory)}", path.read_bytes())

    def holds(self, name: str) -> bool:
        return bool(self._files.exists(f"{BUCKET}/{name}"))

    def remove(self, name: str) -> None:
        self._files.rm_file(f"{BUCKET}/{name}")

    def asked_for(self, ending: str) -> list[str]:
        """The ranges of a file that were read, in order."""
        requests = [line.split(" ", 2) for line in self.asked if line.startswith("GET ")]
        return [span for _, path, span in requests if path.endswith(ending)]


class _Quiet(WSGIRequestHandler):
    def log(self, *_: object) -> None:
        """Nothing: requests are remembered, not printed."""


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Serve one, until the end of the block."""
    store: ObjectStore | None = None
    backend = DomainDispatcherApplication(create_backend_app)

    def remember(environ: dict[str, Any], respond: Callable[..., Any]) -> Iterable[bytes]:
        if store is not None:
            store.asked.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']} {environ.get('HTTP_RANGE', '')}")
        if environ["PATH_INFO"].startswith(f"/{SECRET_BUCKET}"):
            respond("403 Forbidden", [("Content-Type", "application/xml")])
            return [REFUSAL]
        return backend(environ, respond)

    server = make_server("127.0.0.1", 0, remember, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=server.serve_forever, name="s3", daemon=True)
    thread.start()
    store = ObjectStore(f"http://127.0.0.1:{server.server_port}")
    try:
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
