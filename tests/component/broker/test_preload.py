"""Modules that are imported after the start: all of them, and few at a time."""

import json
import subprocess
import sys

AT_ONCE_MAX = 12
"""A package whose own module imports its others comes as a whole."""

CODE = """
import json, sys
import ottla.broker.node
from ottla.broker.loop import preload
brought, before = [], len(sys.modules)
for _ in preload.import_steps():
    brought.append(len(sys.modules) - before)
    before = len(sys.modules)
print(json.dumps({"brought": brought, "left": [name for name in preload.modules() if name not in sys.modules]}))
"""


def test_every_module_is_imported_in_small_steps():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True, timeout=120)
    found = json.loads(done.stdout)
    assert found["left"] == []
    assert sum(found["brought"]) > 200
    assert max(found["brought"]) <= AT_ONCE_MAX
