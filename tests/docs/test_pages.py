"""The documentation is run: what a page tells a reader to type works."""

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

import dpbandits as dp
from dpbandits.environments.distributions import DISTRIBUTIONS
from dpbandits.policies import lookup
from dpbandits.simulation import runs

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "docs/comparison.md",
    "docs/concepts/live.md",
    "docs/howto/arms-and-levels.md",
    "docs/howto/compare.md",
    "docs/howto/add-a-bound.md",
    pytest.param("docs/howto/add-a-policy.md", marks=pytest.mark.slow),
    pytest.param("docs/howto/add-a-curator.md", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs(page: str, tmp_path: Path) -> None:
    """As a module, with the examples in its docstrings."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    assert blocks
    module = tmp_path / "page.py"
    module.write_text("\n".join(blocks))
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    subprocess.run([sys.executable, "-m", "doctest", str(module)], cwd=tmp_path, check=True, env=environment)


def test_the_example_of_the_page_on_simulation_runs() -> None:
    failed, tried = doctest.testfile(str(ROOT / "docs" / "concepts" / "simulation.md"), module_relative=False)
    assert tried > 4
    assert failed == 0


def test_the_commands_of_the_readme_are_understood(
    dpbandits: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command line of the README runs in a checkout, at a shorter horizon."""
    monkeypatch.chdir(ROOT)
    commands = re.findall(
        r"^    (dpbandits (?:policies|simulate).*)$", (ROOT / "README.md").read_text(), flags=re.MULTILINE
    )
    assert len(commands) >= 5
    for command in commands:
        words = shlex.split(re.sub(r"--horizon \S+", "--horizon 1000", command), comments=True)
        status, _, err = dpbandits(*words[1:])
        assert status == 0, err


def test_what_the_readme_says_that_a_command_prints(dpbandits: Callable[..., tuple[int, str, str]]) -> None:
    """All but the seconds that it takes."""
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```console\n\$ dpbandits ([^\n]*)\n(.*?)^time [^\n]*\n```", text, re.MULTILINE | re.DOTALL)
    ((command, printed),) = blocks
    status, out, err = dpbandits(*shlex.split(command))
    assert status == 0, err
    assert out.partition("time ")[0] == printed


@pytest.mark.parametrize("page", ["docs/index.md", "docs/howto/arms-and-levels.md", "docs/howto/find-the-best-arm.md"])
def test_the_commands_of_a_page_run(
    page: str, dpbandits: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In plain Python, at a shorter horizon, from the checkout that the page speaks of."""
    made = runs.Player.of
    monkeypatch.setattr(runs.Player, "of", lambda simulation, engine="compiled": made(simulation, "python"))
    monkeypatch.chdir(ROOT)
    commands = re.findall(r"^    (dpbandits .*)$", (ROOT / page).read_text(), flags=re.MULTILINE)
    assert len(commands) >= 3
    for command in commands:
        words = shlex.split(re.sub(r"--horizon \S+", "--horizon 300", command), comments=True)
        if words[1] in ("plan", "simulate"):
            words += ["--runs", "2"]
        status, _, err = dpbandits(*words[1:])
        assert status == 0, f"{command}: {err}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_table_of_packages_is_the_layers_in_their_order() -> None:
    """The contract is exhaustive, so that every package stands in it. What runs ``python -m dpbandits`` is none."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    level = {name: place for place, layer in enumerate(layers) for name in layer.split(" | ") if name != "__main__"}
    page = (ROOT / "docs" / "concepts" / "architecture.md").read_text()
    rows = re.findall(r"^\| (`.*?`) \|", page.split("| package |")[1].split("\n\n")[0], flags=re.MULTILINE)
    named = [re.findall(r"`(.*?)`", row) for row in rows]
    assert sorted(name for row in named for name in row) == sorted(level)
    for above, below in pairwise(named):
        assert max(level[name] for name in above) <= min(level[name] for name in below), f"{above} is above {below}"


def test_every_policy_stands_on_a_page_of_the_papers() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "papers").glob("*.md"))
    missing = [name for name in lookup.names() if f"`{name}`" not in pages]
    assert not missing


def test_every_distribution_has_its_row_and_its_function() -> None:
    page = (ROOT / "docs" / "howto" / "arms-and-levels.md").read_text()
    for name in DISTRIBUTIONS:
        assert f"| `{name}(" in page, f"docs/howto/arms-and-levels.md has no row for {name}"
        assert callable(getattr(dp.arms, name))
        assert name in dir(dp.arms)


def test_the_page_on_the_best_arm(
    dpbandits: Callable[..., tuple[int, str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its simulations print what it says, and its session ends. Its plan is tried with the other plans."""
    text = (ROOT / "docs" / "howto" / "find-the-best-arm.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    exec(block, {})
    assert capsys.readouterr().out.startswith("Winner(arm='green', ")
    commands = re.findall(r"^    (dpbandits simulate .*)$", text, flags=re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        status, out, err = dpbandits(*shlex.split(command)[1:])
        assert status == 0, err
        assert "\nstopped     half of the runs after " in out
    shown = json.loads(dpbandits(*shlex.split(commands[0])[1:], "--json")[1])["stops"]
    printed = json.loads(re.sub(r"\s+", " ", text[text.index('"stops": ') + 9 : text.index("`mean` and `max`")]))
    assert shown["rounds"] == printed["rounds"]
    assert shown["named"] == printed["named"]
    assert round(shown["error_rate_upper"], 3) == printed["error_rate_upper"]
