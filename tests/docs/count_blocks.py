"""`python -m tests.docs.count_blocks`: how many blocks of the documentation are run, and why the others are not."""

from __future__ import annotations

import sys
from collections import Counter

from tests.docs.blocks import PAGES, SHOWN, TESTED_BY, Block, blocks


def fate(block: Block) -> str:
    if block.is_left_out:
        return f"not run: {block.mark.removeprefix('not run: ')}"
    if block.language in SHOWN and not block.mark:
        return "shown: output, pictures, excerpts"
    return "run" if block.mark or (block.page, block.language) not in TESTED_BY else "run by a test of its page"


if __name__ == "__main__":
    for what, count in Counter(fate(block) for page in PAGES for block in blocks(page)).most_common():
        sys.stdout.write(f"{count:4}  {what}\n")
