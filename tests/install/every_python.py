"""Install the package without extras on every Python that is here (3.11, 3.12, 3.13), and try it.

Run by ``make install``. It downloads the dependencies for each Python, so it is no part of ``make test``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13")
ROOT = Path(__file__).parents[2]


def pythons() -> Iterator[tuple[str, Path]]:
    """Each version that is here: on the path, or in pyenv's folder."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in VERSIONS:
        named = shutil.which(f"python{version}")
        kept = sorted(pyenv.glob(f"{version}.*/bin/python"))
        candidates = [*kept, *([Path(named)] if named else [])]
        working = [path for path in candidates if _works(path)]
        if working:
            yield version, working[0]


def _works(python: Path) -> bool:
    """Whether this is a Python that can make environments, and not a name that leads nowhere."""
    return subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True).returncode == 0


def main() -> int:
    failed = False
    for version, python in pythons():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([python, "-m", "venv", folder], check=True)
            own = Path(folder) / "bin" / "python"
            pip = [str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            constraints = ["--constraint", str(ROOT / "constraints.txt")]
            subprocess.run([*pip, *constraints, str(ROOT)], check=True)
            environment = {**os.environ, "DPBANDITS_CACHE": str(Path(folder) / "cache")}
            smoke = [str(own), str(ROOT / "tests" / "install" / "smoke.py")]
            print(f"Python {version}:", end=" ", flush=True)
            failed |= subprocess.run(smoke, env=environment, cwd=folder).returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
