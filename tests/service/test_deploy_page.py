"""What the page on deployment tells a reader to type works."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from servers import Server, Zygote

ROOT = Path(__file__).parents[2]


def test_the_experiment_with_curl(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "howto" / "deploy.md").read_text()
    script = re.search(r"```sh\n(curl.*?)```", page, flags=re.DOTALL)
    assert script is not None
    zygote = Zygote()
    server = Server(zygote, tmp_path, f"sqlite:///{tmp_path}/test.db")
    server.start()
    try:
        typed = re.sub(r"\n(?=\S)", "; echo\n", script[1]).replace("localhost:8000", f"127.0.0.1:{server.port}")
        said = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    finally:
        server.stop()
        zygote.stop()
    lines = [json.loads(line) for line in said.splitlines() if line.strip()]
    made, told, summary, ledger = lines
    assert made["name"] == "shop"
    assert told == {"status": "accepted"}
    assert summary["responses"]["accepted"] == summary["users"]["count"] == 1
    assert ledger["worst_reward"] == "1"


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
