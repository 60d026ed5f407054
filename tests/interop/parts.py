"""The tests beside the original in four parts; `python -m tests.interop.parts NAME` prints the paths of one.

A path is a folder or a file below tests/; each test belongs to one part. What takes long comes first, so that nothing
long is left for one process at the end. Some run once more on three nodes whose leaders move.
"""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
PARTS = {
    "clients": (
        "interop/demo",
        "interop/console",
        "interop/admin",
        "interop/benchmarks",
        "interop/controller",
        "interop/descriptions",
        "interop/node",
        "interop/quorum",
        "interop/quorum_frames",
        "interop/security",
        "interop/test_apache.py",
        "interop/test_capture.py",
        "interop/test_cleaner.py",
        "interop/test_client.py",
        "interop/test_client_cli.py",
        "interop/test_client_docs.py",
        "interop/test_handover.py",
        "interop/test_handover_states.py",
        "interop/test_kill.py",
        "interop/test_log_files.py",
        "interop/test_programs.py",
        "interop/test_proxy_secrets.py",
        "interop/test_storage.py",
        "interop/topologies",
        "browser",
    ),
    "groups": (
        "interop/groups",
        "interop/groups_consumer",
        "interop/groups_share",
        "interop/observe",
        "interop/share",
        "interop/share_state",
        "interop/streams",
        "interop/transactions",
    ),
    "spark": ("interop/spark",),
    "pipeline": ("interop/newcomer", "interop/pipeline"),
}
MOVING = (
    "interop/streams/test_results.py",
    "interop/transactions/test_exactly_once.py",
    "interop/transactions/test_java_clients.py",
    "interop/transactions/test_python_clients.py",
    "interop/share/test_java_clients.py",
    "interop/groups/test_java_clients.py",
    "interop/groups/test_python_clients.py",
    "interop/groups_consumer/test_java_clients.py",
    "interop/groups_consumer/test_python_clients.py",
)
"""Run once more on three nodes (`OTTLA_INTEROP_BROKERS=moving`)."""


def files(path: str) -> list[Path]:
    """The files of tests at a path of a part."""
    place = TESTS / path
    return [place] if place.is_file() else sorted(place.rglob("test_*.py"))


if __name__ == "__main__":
    known = PARTS | {"moving": MOVING}
    if sys.argv[1:] not in [[name] for name in known]:
        sys.exit(f"usage: python -m tests.interop.parts {'|'.join(known)}")
    sys.stdout.writelines(f"tests/{path}\n" for path in known[sys.argv[1]])
