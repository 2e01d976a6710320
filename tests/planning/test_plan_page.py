"""The page on planning is true: its commands print what it shows, and draw what its figures show."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "howto" / "plan.md").read_text()
BLOCKS = re.findall(r"```console\n\$ (.+)\n((?:.*\n)*?)```", TEXT)


def test_the_page_answers_the_questions() -> None:
    assert len(BLOCKS) == 4
    for _, shown in BLOCKS:
        assert len(shown.splitlines()) > 5


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_command_of_the_page(number: int, tmp_path: Path, dpbandits: Callable[..., tuple[int, str, str]]) -> None:
    command, shown = BLOCKS[number]
    words = shlex.split(command)
    figure = ROOT / words[words.index("--out") + 1]
    words[words.index("--out") + 1] = str(tmp_path)
    assert words[0] == "dpbandits"
    status, out, err = dpbandits(*words[1:])
    assert status == 0, err
    printed = [line.rstrip() for line in out.strip("\n").split("\n")]
    assert printed == shown.rstrip("\n").split("\n")
    name = "levels" if "levels" in words else "plan"
    drawn, kept = (json.loads((folder / f"{name}.json").read_text()) for folder in (tmp_path, figure))
    assert _without_version(drawn) == _without_version(kept)
    for kind in ("png", "svg"):
        assert (tmp_path / f"{name}.{kind}").stat().st_size > 10_000
        assert f"{figure.relative_to(ROOT / 'docs')}/{name}.png" in TEXT


def test_the_python_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    exec(block, {})
    assert capsys.readouterr().out.startswith("adap-imed ")


def _without_version(document: Any) -> Any:
    """The numbers, to twelve digits: another processor may round the last ones differently."""
    if isinstance(document, dict):
        return {key: _without_version(value) for key, value in document.items() if key != "version"}
    if isinstance(document, list):
        return [_without_version(value) for value in document]
    return float(f"{document:.12g}") if isinstance(document, float) else document
