"""The documentation as a site: it builds offline without a warning, and says what the package says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dpbandits import __version__
from dpbandits.cli import commands
from dpbandits.environments.problems import PROBLEMS
from dpbandits.policies import lookup
from dpbandits.simulation.settings import settings

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    # A proxy that does not exist: whatever asks the network fails.
    offline = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    environment = {**os.environ, **offline, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def text_of(page: Path) -> str:
    """What a reader sees."""
    html = re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))
    return html.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace("&#124;", "|")


def leaves(group: click.Group, path: str = "dpbandits") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from leaves(command, f"{path} {name}")


def test_no_page_asks_another_server(site: Path) -> None:
    for page in site.rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        loaded = re.findall(
            r"<(?:script|img|iframe)[^>]+src=\"(https?:[^\"]+)\"|<link[^>]+href=\"(https?:[^\"]+)\"", html
        )
        assert not loaded, f"{page.name} loads {loaded}"


def test_the_command_line_page_has_every_command_and_option(site: Path) -> None:
    shown = text_of(site / "command-line.html")
    for path, command in leaves(commands()):
        assert path in shown
        for parameter in command.get_params(click.Context(command)):
            assert parameter.opts[0] in shown, f"{path} {parameter.opts[0]}"
    for status in ("70", "130", "DPBANDITS_CACHE"):
        assert status in shown


def test_the_reference_has_every_policy_and_problem(site: Path) -> None:
    policies, arms = text_of(site / "api" / "policies.html"), text_of(site / "howto" / "arms-and-levels.html")
    for name in lookup.names():
        assert f"{name.replace('-', '_')}(" in policies
    for name, means in PROBLEMS.items():
        assert f"@{name}" in arms
        assert means in arms


def test_the_toml_keys_are_documented() -> None:
    page = (ROOT / "docs" / "howto" / "compare.md").read_text()
    keys = {name for name in settings() if name not in ("epsilon", "options")}
    for key in (*keys, "title", "runs", "epsilons", "name", "label", "epsilon", "options"):
        assert f"`{key}`" in page, key


def test_every_page_is_in_the_menu(site: Path) -> None:
    menu = (site / "index.html").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT / "docs").with_suffix(".html").as_posix().replace("README", "index")
        assert f'href="{path}"' in menu, path


def test_the_citation_names_this_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text().splitlines()
    assert f"version: {__version__}" in citation
    assert "license: Apache-2.0" in citation


def test_the_page_for_contributors_fits_a_screen() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert len(text.splitlines()) <= 45
    for thing in (
        "make test",
        "add-a-policy",
        "add-a-curator",
        "add-a-distribution",
        "add-a-bound",
        "add-an-experiment",
    ):
        assert thing in text
