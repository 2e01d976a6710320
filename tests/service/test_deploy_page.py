"""What the page on deployment tells a reader to type works."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from postgres import Postgres
from servers import Server, Workers

from dpbandits.policies import lookup
from dpbandits.service.experiment import Experiment

ROOT = Path(__file__).parents[2]


def typed(script: str, server: Server | Workers) -> list[Any]:
    """What a server says to these commands."""
    lines = re.sub(r"\n(?=\S)", "; echo\n", script).replace("localhost:8000", f"127.0.0.1:{server.port}")
    said = subprocess.run(["bash", "-c", lines], capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in said.splitlines() if line.strip()]


def of_the_readme() -> str:
    script = re.search(r"    dpbandits serve &\n(.*?)\n\n", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert script is not None
    return "\n".join(re.sub(r"\s+# .*", "", line.removeprefix("    ")) for line in script[1].splitlines()) + "\n"


def test_the_experiment_with_curl(server: Server) -> None:
    script = re.search(
        r"```sh\n(until curl.*?)```", (ROOT / "docs" / "howto" / "deploy.md").read_text(), flags=re.DOTALL
    )
    assert script is not None
    made, told, summary, ledger = typed(script[1], server)
    assert made["name"] == "shop"
    assert told == {"status": "accepted"}
    assert summary["responses"]["accepted"] == summary["users"]["count"] == 1
    assert ledger["worst_reward"] == "1"


def test_the_commands_of_the_readme(server: Server) -> None:
    made, told, summary, ledger = typed(of_the_readme(), server)
    assert made["name"] == "shop"
    assert told == {"status": "accepted"}
    assert summary["responses"]["used"] == summary["version"] == len(ledger["entries"]) == 1


def test_the_same_on_postgresql_with_two_workers_of_which_each_is_killed(tmp_path: Path, postgres: Postgres) -> None:
    with Workers(tmp_path, postgres.database()) as workers:
        made, told, summary, _ = typed(of_the_readme(), workers)
        assert made["name"] == "shop"
        assert told == {"status": "accepted"}
        assert summary["responses"]["accepted"] == 1
        before = settled(workers, "shop", 1)
        asked = {"name": "local", "arms": ["red", "green"], "policy": "ldp-ucb-b", "epsilon": "1"}
        assert workers.call("POST", "/v1/experiments", asked)[0] == 201
        for worker in workers.started[:2]:
            for number in range(20):
                if number == 10:
                    os.kill(worker, signal.SIGKILL)
                answer(workers, f"{worker}-{number}")
        found = settled(workers, "local", 40)
        assert found["decisions"] == 40
        assert settled(workers, "shop", 1) == before  # what was released is what it was
        assert workers.process.poll() is None


def answer(workers: Workers, name: str) -> None:
    """Decide and respond, and try again as a client does when its connection breaks or it is told to come later."""
    decided: dict[str, Any] = {}
    statuses: list[str] = []
    deadline = time.monotonic() + 180  # both workers may be starting
    while not statuses and time.monotonic() < deadline:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if not decided:
                code, made = workers.call("POST", "/v1/experiments/local/decisions", {"decision": name})
                assert code in (200, 503), made
                decided = made if code == 200 else {}
            if decided:
                code, said = workers.call("POST", "/v1/responses", {"token": decided["token"], "response": 1})
                assert code in (200, 503), said
                statuses += [said["status"]] if code == 200 else []
        if not statuses:
            time.sleep(0.05)
    assert statuses in (["accepted"], ["duplicate"])


def settled(workers: Workers, name: str, responses: int) -> dict[str, Any]:
    """The summary, once all that was accepted is folded; without what depends on the time."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        code, found = workers.call("GET", f"/v1/experiments/{name}/summary")
        assert code in (200, 503), found
        if code == 200 and found["responses"]["used"] == responses:
            return {key: value for key, value in found.items() if key != "health"}
        time.sleep(0.05)
    raise AssertionError(f"not all that was accepted is counted: {found}")


def test_the_page_names_settings_and_metrics_that_exist() -> None:
    from dpbandits.cli.serve import serve
    from dpbandits.service.metrics import Metrics

    flags = {flag for option in serve.params for flag in option.opts}
    page = (ROOT / "docs" / "howto" / "deploy.md").read_text()
    for flag in re.findall(r"`(--[a-z-]+)`", page):
        assert flag in flags
    metrics = Metrics()
    metrics.observe("decide", 200, 0.001)
    text = metrics.text().decode()
    for name in re.findall(r"`(dpbandits_[a-z_]+)", page):
        assert name in text, name


def test_the_page_names_the_policies_that_several_workers_refuse() -> None:
    def refused(name: str) -> bool:
        policy = lookup.sample(name)
        experiment: Any = SimpleNamespace(policy=policy, by_stint=policy.curator.by_stint)
        decided_anywhere: Any = Experiment.decided_anywhere
        return not decided_anywhere.fget(experiment)

    (said,) = re.findall(
        r"policies are refused here: (.*?)\. Their", (ROOT / "docs/howto/deploy.md").read_text(), re.DOTALL
    )
    names = [name for name in lookup.names() if refused(name)]
    sentence = f"These policies are refused here: {', '.join(f'`{name}`' for name in names)}."
    assert re.findall(r"`([\w-]+)`", said) == names, f"docs/howto/deploy.md must say: {sentence}"
