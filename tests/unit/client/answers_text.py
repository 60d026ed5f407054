"""What `ottla/client/answers.py` has to say; `python -m tests.unit.client.answers_text` writes it anew."""

from pathlib import Path

from ottla.client import answers
from ottla.wire.index import MESSAGES

FILE = Path(answers.__file__)
LINE_MAX = 120  # as ruff lays it out
FIRST, LAST = "        # --- one for each API: begin\n", "        # --- one for each API: end\n"


def requests() -> list[str]:
    return [name for name, entry in MESSAGES.items() if entry.kind == "request"]


def overloads() -> str:
    lines = []
    for name in requests():
        asked = f"self, message: wire.{name}, /, **to: Unpack[SendOptions]"
        answer = f"wire.{name.removesuffix('Request')}Response: ..."
        line = f"        async def send({asked}) -> {answer}"
        wrapped = ["        async def send(", f"            {asked}", f"        ) -> {answer}"]
        lines += ["        @overload", *([line] if len(line) <= LINE_MAX else wrapped)]
    return "\n".join(lines) + "\n"


def rewritten(text: str) -> str:
    before, _, rest = text.partition(FIRST)
    return before + FIRST + overloads() + LAST + rest.partition(LAST)[2]


if __name__ == "__main__":
    FILE.write_text(rewritten(FILE.read_text()))
