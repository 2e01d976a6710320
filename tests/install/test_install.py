"""Installing: what works without extras, what the README promises, and what a missing extra's message says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from dpbandits.errors import MissingExtraError

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.slow
def test_the_base_install_works_without_extras() -> None:
    smoke = ROOT / "tests" / "install" / "smoke.py"
    done = subprocess.run([sys.executable, str(smoke)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def _packages(extra: str) -> set[str]:
    """The packages that an extra brings, those of the extras inside it included."""
    found: set[str] = set()
    for requirement in PROJECT["optional-dependencies"][extra]:
        inner = re.match(r"dpbandits\[(.+)\]", requirement)
        if inner is not None:
            found |= {package for part in inner[1].split(",") for package in _packages(part)}
        else:
            found.add(re.split(r"[<>=\[ ]", requirement)[0])
    return found


def test_the_extra_of_the_readme_suffices_for_its_commands() -> None:
    text = (ROOT / "README.md").read_text()
    first, *others = re.findall(r"pip install '\.\[(\w+)\]'", text)
    assert {"joblib", "jinja2", "matplotlib", "pandas", "pyarrow"} <= _packages(first)
    assert set(others) <= {"service"}, "an extra for which this test has no commands"
    assert {"fastapi", "uvicorn", "sqlalchemy", "alembic", "jinja2"} <= _packages("service")


def test_the_demo_does_not_install_everything() -> None:
    recipe = (ROOT / "Makefile").read_text()
    (needed,) = re.findall(r"^demo: \$\(VENV\)/(\w+)$", recipe, flags=re.MULTILINE)
    (extra,) = re.findall(rf"^\$\(VENV\)/{needed}:.*\n.*INSTALL\) '\.\[(\w+)\]'", recipe, flags=re.MULTILINE)
    assert extra == "reproduce"
    assert not _packages(extra) & {"mypy", "pytest", "dask", "cvxpy", "river"}


def test_a_release_would_have_addresses() -> None:
    assert {"Homepage", "Documentation", "Changelog", "Issues"} <= set(PROJECT["urls"])


class _Installed:
    def __init__(self, origin: dict[str, object] | None) -> None:
        self.origin = origin

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self.origin is None else json.dumps(self.origin)


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'dpbandits[plot]'"),
        ({"url": "file:///my%20code/dp", "dir_info": {}}, "pip install '/my code/dp[plot]'"),
        ({"url": "file:///dp", "dir_info": {"editable": True}}, "pip install --editable '/dp[plot]'"),
        ({"url": "file:///x/dp.whl", "archive_info": {}}, "pip install 'dpbandits[plot] @ file:///x/dp.whl'"),
    ],
)
def test_hints_install_from_where_the_package_came(
    origin: dict[str, object] | None, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda name: _Installed(origin))
    assert str(MissingExtraError("matplotlib", "plot")) == f"matplotlib is not installed: {command}"
