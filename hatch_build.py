"""Builds the page into the wheel, where Node is; without it the package is whole but for the page."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface[Any]):
    """Runs npm where a source is newer than the page. An editable install builds nothing: ``make web`` does."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        sources, built = Path(self.root, "web"), Path(self.root, "src", "dpbandits", "service", "web")
        if version == "editable" or _current(built / "index.html", [sources, Path(self.root, "clients", "js", "src")]):
            return
        npm = shutil.which("npm")
        if npm is None or not sources.is_dir():
            self.app.display_warning("npm was not found: this wheel has no page; dpbandits serve says so at /")
            return
        for words in (["install", "--no-audit", "--no-fund", "--no-package-lock"], ["run", "build"]):
            done = subprocess.run([npm, *words], cwd=sources, capture_output=True, text=True, check=False)
            if done.returncode:
                reason = (done.stderr or done.stdout).strip().splitlines()[-1:]
                self.app.display_warning(f"npm {words[0]} failed, so this wheel has no page: {' '.join(reason)}")
                shutil.rmtree(built, ignore_errors=True)
                return


def _current(page: Path, sources: list[Path]) -> bool:
    if not page.exists():
        return False
    files = [file for folder in sources for file in folder.rglob("*") if "node_modules" not in file.parts]
    return all(file.stat().st_mtime <= page.stat().st_mtime for file in files if file.is_file())
