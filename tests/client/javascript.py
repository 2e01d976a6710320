"""The JavaScript package, built once, however many processes test it."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import tempfile
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "clients" / "js"


def npm(*arguments: str) -> str:
    """What npm prints on its standard output; its complaint is the test's if it fails."""
    done = subprocess.run(["npm", *arguments], cwd=PACKAGE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build() -> Path:
    """The folder with the built modules, which are built again when a source is newer."""
    name = hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:16]
    with (Path(tempfile.gettempdir()) / f"dpbandits-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sources = [PACKAGE / "package.json", PACKAGE / "tsconfig.json", *(PACKAGE / "src").glob("*.ts")]
        done = PACKAGE / "node_modules" / ".built"
        whole = done.exists() and (PACKAGE / "dist").exists()
        if not whole or done.stat().st_mtime < max(source.stat().st_mtime for source in sources):
            npm("install", "--no-audit", "--no-fund", "--no-package-lock", "--silent")
            npm("run", "build")
            done.touch()
    return PACKAGE / "dist"
