"""What the pages on clients and on OpenFeature tell a reader to type works, against a real server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from javascript import PACKAGE
from servers import Server, Zygote

ROOT = Path(__file__).parents[2]
PAGES = ("openfeature", "clients")
BLOCKS = [
    (page, language, number)
    for page in PAGES
    for language, count in (("python", 1), ("js", 2 if page == "openfeature" else 1))
    for number in range(count)
]
AWHILE = {
    "python": "\nimport time\ntime.sleep({seconds})\n",
    "js": "\nawait new Promise((go) => setTimeout(go, 1000 * {seconds}));\n",
}
#: Seconds for an answer, which is sent when 5 to 15 % of them are left. On a busy machine the second try is in time.
WINDOWS = (3, 40)


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / "howto" / f"{page}.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def run(language: str, code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment: dict[str, Any] = {**os.environ, "XDG_DATA_HOME": str(folder / "data")}
    if language == "python":
        command = [sys.executable, "-W", "error", "-c", code]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    code = 'import "fake-indexeddb/auto";\n' + code.replace('folder: "answers"', f'folder: "{folder}/answers"')
    command = ["node", "--input-type=module", "-e", code]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=PACKAGE, env=environment)


@pytest.mark.parametrize(("page", "language", "number"), BLOCKS)
def test_the_page_works_as_written(
    zygote: Zygote, tmp_path: Path, built: Path, page: str, language: str, number: int
) -> None:
    for window in WINDOWS:
        folder = tmp_path / f"{window}"
        folder.mkdir()
        server = Server(zygote, folder, f"sqlite:///{folder}/test.db")
        server.start()
        try:
            found = answered(server, folder, page, language, number, window)
        finally:
            server.stop()
        if not found["responses"]["late"]:
            break
    assert found["responses"]["accepted"] == found["decisions"] == 1


def answered(server: Server, folder: Path, page: str, language: str, number: int, window: int) -> dict[str, Any]:
    """The summary of the experiment, when an answer has come."""
    made = {"name": "banner", "arms": ["red", "green"], "policy": "ldp-ucb-b", "epsilon": "1"}
    assert server.call("POST", "/v1/experiments", {**made, "response_window": window})[0] == 201
    code = blocks(page, language)[number].replace("http://localhost:8000", f"http://127.0.0.1:{server.port}")
    shown = "print" if language == "python" else "console.log"
    arm = "decision.arm" if page == "clients" else "banner"
    awhile = AWHILE[language].format(seconds=window + 0.5)
    done = run(language, f"{code}\n{shown}({arm}){';' if language == 'js' else ''}{awhile}", folder)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) <= {"red", "green"}
    assert done.stdout.split()
    deadline = time.monotonic() + 60
    while True:
        found: dict[str, Any] = server.call("GET", "/v1/experiments/banner/summary")[1]
        if found["responses"]["accepted"] or found["responses"]["late"]:
            return found
        assert time.monotonic() < deadline, (found["responses"], done.stderr)
        time.sleep(0.05)


def test_every_block_is_run() -> None:
    for page in PAGES:
        text = (ROOT / "docs" / "howto" / f"{page}.md").read_text()
        ran = sum(1 for block in BLOCKS if block[0] == page)
        assert text.count("```") == 2 * ran


def test_the_experiment_of_the_page_is_made_as_written(server: Server, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "howto" / "openfeature.md").read_text()
    found = re.search(r"    (curl .*?)\n\n", page, flags=re.DOTALL)
    assert found is not None
    typed = found[1].replace("localhost:8000", f"127.0.0.1:{server.port}")
    subprocess.run(["bash", "-c", typed], capture_output=True, check=True, cwd=tmp_path)
    assert server.call("GET", "/v1/experiments/banner")[1]["arms"] == ["red", "green"]
