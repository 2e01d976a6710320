"""What the page on deployment tells a reader to type works."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from servers import Server, Zygote

ROOT = Path(__file__).parents[2]


def typed(script: str, folder: Path) -> list[Any]:
    """What a server in an empty folder says to these commands."""
    zygote = Zygote()
    server = Server(zygote, folder, f"sqlite:///{folder}/test.db")
    server.start()
    try:
        lines = re.sub(r"\n(?=\S)", "; echo\n", script).replace("localhost:8000", f"127.0.0.1:{server.port}")
        said = subprocess.run(["bash", "-c", lines], capture_output=True, text=True, check=True, cwd=folder).stdout
    finally:
        server.stop()
        zygote.stop()
    return [json.loads(line) for line in said.splitlines() if line.strip()]


def test_the_experiment_with_curl(tmp_path: Path) -> None:
    script = re.search(r"```sh\n(curl.*?)```", (ROOT / "docs" / "howto" / "deploy.md").read_text(), flags=re.DOTALL)
    assert script is not None
    made, told, summary, ledger = typed(script[1], tmp_path)
    assert made["name"] == "shop"
    assert told == {"status": "accepted"}
    assert summary["responses"]["accepted"] == summary["users"]["count"] == 1
    assert ledger["worst_reward"] == "1"


def test_the_commands_of_the_readme(tmp_path: Path) -> None:
    script = re.search(r"    dpbandits serve &\n(.*?)\n\n", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert script is not None
    lines = [re.sub(r"\s+# .*", "", line.removeprefix("    ")) for line in script[1].splitlines()]
    made, told, summary, ledger = typed("\n".join(lines) + "\n", tmp_path)
    assert made["name"] == "shop"
    assert told == {"status": "accepted"}
    assert summary["responses"]["used"] == summary["version"] == len(ledger["entries"]) == 1


def test_the_page_names_settings_and_metrics_that_exist() -> None:
    from dpbandits.service.metrics import Metrics
    from dpbandits.service.settings import ServerSettings

    page = (ROOT / "docs" / "howto" / "deploy.md").read_text()
    for flag in re.findall(r"`--([a-z-]+)`", page):
        assert flag in ("config", "check") or flag.replace("-", "_") in ServerSettings.model_fields
    metrics = Metrics()
    metrics.observe("decide", 200, 0.001)
    text = metrics.text().decode()
    for name in re.findall(r"`(dpbandits_[a-z_]+)", page):
        assert name in text, name
