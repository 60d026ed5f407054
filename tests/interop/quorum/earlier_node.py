"""`python -m tests.interop.quorum.earlier_node WORD...`: `ottla WORD...`, of a build that knows fewer levels.

It runs whichever ottla comes first on the path, and hides every metadata.version beyond HIGHEST from it.
"""

from __future__ import annotations

from ottla.cli import main
from ottla.core.metadata import features

HIGHEST = 29

if __name__ == "__main__":
    for level in range(HIGHEST + 1, features.METADATA_VERSION_MAX + 1):
        del features.METADATA_VERSIONS[level]
    features.METADATA_VERSION_MAX = HIGHEST  # type: ignore[misc]
    features.SUPPORTED[features.METADATA_VERSION] = (features.METADATA_VERSION_MIN, HIGHEST)
    main()
