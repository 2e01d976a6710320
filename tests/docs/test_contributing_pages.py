"""The pages on contributing are followed to the letter, on a copy of the package: the files they name are enough."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOWTO = ROOT / "docs" / "howto"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that a test may change."""
    skipped = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(ROOT / "src" / "dpbandits", tmp_path / "src" / "dpbandits", ignore=skipped))


def python(package: Path, *words: str) -> str:
    """What the copy prints when Python is called with these words."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, *words], cwd=package.parents[1], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (HOWTO / page).read_text(), flags=re.DOTALL)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{path.name} has {old!r} {text.count(old)} times"
    path.write_text(text.replace(old, new))


def test_a_policy_is_a_file_an_import_and_a_name(package: Path) -> None:
    code = "\n".join(blocks("add-a-policy.md")[:2])
    (package / "policies" / "ldp_greedy.py").write_text(code)
    init = package / "policies" / "__init__.py"
    replace(
        init,
        "\n__all__ = [\n",
        '\nfrom dpbandits.policies.ldp_greedy import ldp_greedy\n\n__all__ = [\n    "ldp_greedy",\n',
    )
    assert "ldp-greedy" in python(package, "-m", "dpbandits", "policies")
    settings = ["--arms", "0.9,0.6", "--epsilon", "1", "--horizon", "1000", "--json"]
    assert '"ldp-greedy"' in python(package, "-m", "dpbandits", "simulate", "LDP-Greedy", *settings)
    python(package, "-c", "from dpbandits.policies import lookup; assert 'ldp-greedy' in lookup.names()")


def test_a_distribution_is_one_file(package: Path) -> None:
    number, branch, described, listed = blocks("add-a-distribution.md")
    path = package / "environments" / "distributions.py"
    text = path.read_text()
    codes = re.search(r"^[A-Z, ]+ = range\(\d+\)$", text, flags=re.MULTILINE)
    assert codes
    replace(path, codes[0], f"{codes[0]}\n{number}")
    end = re.search(r"^    raise .*$", text[text.index("def draw(") :], flags=re.MULTILINE)
    assert end
    replace(path, end[0], f"{branch}{end[0]}")
    path.write_text(path.read_text() + "\n\n" + described + "\n\n" + listed)
    for command in re.findall(
        r"^    dpbandits (.*)$", (HOWTO / "add-a-distribution.md").read_text(), flags=re.MULTILINE
    ):
        assert python(package, "-m", "dpbandits", *re.sub("'", "", command).split())
    seen = python(
        package,
        "-c",
        "from dpbandits.environments.distributions import Triangular as T\n"
        "from dpbandits.environments import Arms\n"
        "a = T(0.2, 0.8)\n"
        "assert abs(a.quantile(1 - a.above(0.37)) - 0.37) < 1e-12\n"
        "print(Arms.of('triangular(0.4,1)+triangular(0,1)').means)",
    )
    assert seen.strip() == "(0.7, 0.5)"


@pytest.mark.slow
def test_an_experiment_is_one_module(package: Path, tmp_path: Path) -> None:
    (module,) = blocks("add-an-experiment.md")
    (package / "experiments" / "azize2022" / "fig9.py").write_text(module)
    python(
        package, "-m", "dpbandits", "reproduce", "azize2022/fig9", "--scale", "quick", "--out", str(tmp_path / "out")
    )
    assert list((tmp_path / "out").rglob("*fig9*"))


def test_a_bound_is_found_by_itself(package: Path) -> None:
    (code,) = blocks("add-a-bound.md")
    path = package / "bounds" / "central.py"
    function = code[code.index("@theorem(") : code.index("\nbound = ")]
    path.write_text(path.read_text() + "\n\n" + function)
    settings = ["--arms", "0.9,0.6", "--epsilon", "1", "--horizon", "1000"]
    assert "ucb1-logarithmic" in python(package, "-m", "dpbandits", "bounds", *settings, "--json")
