"""Write what the commands of docs/howto/plan.md print into that page, and draw its figures again.

python tools/plan_page.py
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "howto" / "plan.md"
BLOCK = re.compile(r"```console\n\$ (.+)\n((?:.*\n)*?)```")


def printed(command: str) -> str:
    """What a command prints, without spaces at the ends of lines."""
    words = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.strip("\n").split("\n"))


def main() -> None:
    text = BLOCK.sub(lambda found: f"```console\n$ {found[1]}\n{printed(found[1])}```", PAGE.read_text())
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
