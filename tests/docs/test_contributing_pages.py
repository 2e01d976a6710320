"""The pages on contributing are followed to the letter, on a copy of the repository: the files they name are enough.

The copy gets the policy, the curator, the distribution, the bound and the experiment of the five pages. No file changes
that no page names, and the repository's own tests that find their subjects by themselves pass in the copy.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOWTO = ROOT / "docs" / "howto"
COPIED = ("src", "docs", "tests", "tools", "examples", "pyproject.toml", "conftest.py", "CHANGELOG.md", "README.md")
#: What stands for the names in the pages' tables.
PLACES = {
    "add-a-policy.md": {"NAME": "greedy", "PAPER": "strongest"},
    "add-a-curator.md": {"NAME": "blocks"},
    "add-a-distribution.md": {},
    "add-a-bound.md": {"FAMILY": "central"},
    "add-an-experiment.md": {"NAME": "fig9", "PAPER": "azize2022"},
}
#: The curator's page ends with "and then the policy that uses it".
ITS_POLICY = {"src/dpbandits/policies/blocks_ucb.py", "src/dpbandits/policies/__init__.py", "docs/papers/strongest.md"}
NEW = ("ldp-greedy", "adap-greedy", "blocks-ucb")
#: Tests that find distributions, bounds, experiments and parts; those that go through all policies are found by grep.
REGISTRIES = [
    "tests/test_names.py",
    "tests/docs/test_pages.py::test_every_distribution_has_its_row_and_its_function",
    "tests/docs/test_measured.py::test_settings_and_theorems_of_a_paper_are_those_of_the_package",
    "tests/test_benchmark.py::test_every_policy_of_a_track_can_be_played_on_all_its_problems_and_in_its_tails",
    "tests/test_benchmark.py::test_the_page_of_the_documentation_is_of_this_problem_set",
    "tests/bounds/test_catalogue.py::test_every_theorem_applies_somewhere",
    "tests/bounds/test_catalogue.py::test_every_theorem_is_documented[ucb1-logarithmic]",
    "tests/bounds/test_catalogue.py::test_every_theorem_has_its_line_in_the_documentation",
    "tests/bounds/test_bounds_hold.py::test_the_law_has_something_to_say_about[ucb1]",
    "tests/bounds/test_bounds_command.py::test_a_policy_is_under_the_lower_bounds_of_its_promise",
    "tests/experiments/test_figures.py::test_every_claim_has_its_row_in_the_docs",
    "tests/test_conformance.py",
]
OTHER_CASES = "not test_law or ldp-greedy"  # of the laws, those of one new policy: each takes seconds to compile
#: A test file with these words has tests of all policies.
ALL_POLICIES = "lookup.names()"
NEEDS_THE_SITE = "test_site.py"  # which is not in the copy


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (HOWTO / page).read_text(), flags=re.DOTALL)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{path.name} has {old!r} {text.count(old)} times"
    path.write_text(text.replace(old, new))


def python(copy: Path, *words: str) -> str:
    """What the copy prints when Python is called with these words."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, *words], cwd=copy, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def listed(folder: Path, module: str, *names: str) -> None:
    """Import names from a module in a package's ``__init__``, and list them; Ruff sorts them in."""
    init = folder / "__init__.py"
    package = ".".join(folder.relative_to(folder.parents[1]).parts)
    replace(init, "\n__all__ = [\n", f"from {package}.{module} import {', '.join(names)}\n\n__all__ = [\n")
    replace(init, "__all__ = [\n", "__all__ = [\n" + "".join(f'    "{name}",\n' for name in names))
    python(folder.parents[2], "-m", "ruff", "check", "--quiet", "--fix", "--select", "I001,RUF022", str(init))


def add_a_policy(copy: Path) -> None:
    agent, policies = blocks("add-a-policy.md")[:2]
    package = copy / "src" / "dpbandits"
    (package / "agents" / "greedy.py").write_text(f'"""Epsilon-greedy."""\n\n{agent}')
    listed(package / "agents", "greedy", "Greedy")
    made = policies.replace("import Doubling\n", "import Doubling, Greedy\n")
    (package / "policies" / "greedy.py").write_text(f'"""Epsilon-greedy on private means."""\n\n{made}')
    listed(package / "policies", "greedy", "adap_greedy", "ldp_greedy")
    page = copy / "docs" / "papers" / "strongest.md"
    page.write_text(page.read_text() + "\n`ldp-greedy` and `adap-greedy` explore at random.\n")


def add_a_curator(copy: Path) -> None:
    curator, policy = blocks("add-a-curator.md")
    package = copy / "src" / "dpbandits"
    (package / "curators" / "blocks.py").write_text(f'"""The means of blocks."""\n\n{curator}')
    listed(package / "curators", "blocks", "Blocks")
    made = policy.replace("from dpbandits.testing import check\n", "").removesuffix("check(blocks_ucb)\n").rstrip()
    made = made.replace("import UCB\n", "import UCB\nfrom dpbandits.curators import Blocks\n")
    (package / "policies" / "blocks_ucb.py").write_text(f'"""UCB on blocks."""\n\n{made}\n')
    listed(package / "policies", "blocks_ucb", "blocks_ucb")
    page = copy / "docs" / "papers" / "strongest.md"
    page.write_text(page.read_text() + "\n`blocks-ucb` releases the mean of each block.\n")


def add_a_distribution(copy: Path) -> None:
    number, branch, described, entry = blocks("add-a-distribution.md")
    path = copy / "src" / "dpbandits" / "environments" / "distributions.py"
    text = path.read_text()
    codes = re.search(r"^[A-Z, ]+ = range\(\d+\)$", text, flags=re.MULTILINE)
    end = re.search(r"^    raise .*$", text[text.index("def draw(") :], flags=re.MULTILINE)
    assert codes
    assert end
    replace(path, codes[0], f"{codes[0]}\n{number.rstrip()}")
    replace(path, end[0], f"{branch}{end[0]}")
    replace(path, "\n\nDISTRIBUTIONS:", f"\n\n{described}\n\nDISTRIBUTIONS:")
    path.write_text(path.read_text() + entry)
    row = "| `normal(0.9,1)` |"
    replace(copy / "docs" / "howto" / "arms-and-levels.md", row, f"| `triangular(0,1)` | a triangle |\n{row}")


def add_a_bound(copy: Path) -> None:
    (code,) = blocks("add-a-bound.md")
    path = copy / "src" / "dpbandits" / "bounds" / "central.py"
    path.write_text(path.read_text() + "\n\n" + code[code.index("@theorem(") : code.index("\n\nbound = ")])
    python(copy, "tools/theory_page.py")


def add_an_experiment(copy: Path) -> None:
    (module,) = blocks("add-an-experiment.md")
    (copy / "src" / "dpbandits" / "experiments" / "azize2022" / "fig9.py").write_text(module)
    python(copy, "tools/papers_pages.py")


ADD: dict[str, Callable[[Path], None]] = {
    "add-a-policy.md": add_a_policy,
    "add-a-curator.md": add_a_curator,
    "add-a-distribution.md": add_a_distribution,
    "add-a-bound.md": add_a_bound,
    "add-an-experiment.md": add_an_experiment,
}


def named(page: str) -> set[str]:
    """The files of the page's table, for what the test adds."""
    text = (HOWTO / page).read_text()
    rows = re.findall(r"^\| `(.*?)` \|", text[text.index("| file | change |") :].split("\n\n")[0], flags=re.MULTILINE)
    assert rows
    for word, place in PLACES[page].items():
        rows = [row.replace(word, place) for row in rows]
    return {*rows}


def contents(folder: Path) -> dict[str, bytes]:
    """The text files that a contribution may change."""
    kinds = (".md", ".py", ".json", ".toml")
    found = (path for path in folder.rglob("*") if path.suffix in kinds and path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository in which all five pages were followed; what each changed is what its table names."""
    folder = tmp_path_factory.mktemp("copy")
    skipped = shutil.ignore_patterns("__pycache__", "web")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=skipped)
        else:
            shutil.copy(ROOT / name, folder / name)
    for page, add in ADD.items():
        before = contents(folder)
        add(folder)
        replace(folder / "CHANGELOG.md", "\nThe first version.\n\n", f"\nThe first version.\n\n- What {page} adds.\n")
        after = contents(folder)
        changed = {name for name in after if before.get(name) != after[name]}
        assert changed == named(page) | (ITS_POLICY if page == "add-a-curator.md" else set()), page
    return folder


@pytest.mark.slow
def test_the_repository_s_own_tests_pass_in_the_copy(copy: Path) -> None:
    done = python(
        copy, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", "-rA", "-k", OTHER_CASES, *REGISTRIES
    )
    assert done.count("PASSED tests/test_conformance.py::test_law[ldp-greedy on ") > 20


def of_all_policies(copy: Path) -> tuple[list[str], list[str]]:
    """The files whose tests go through all policies, and the names of the tests that do so within one case."""
    files, tests = [], []
    for path in sorted((copy / "tests").rglob("test_*.py")):
        text = path.read_text()
        if ALL_POLICIES not in text or path.name == NEEDS_THE_SITE:
            continue
        files.append(str(path))
        body = ast.parse(text).body
        made = [node for node in body if isinstance(node, ast.Assign) and ALL_POLICIES in ast.unparse(node)]
        lists = [rf"\b{ast.unparse(node.targets[0])}\b" for node in made]
        words = "|".join([re.escape(ALL_POLICIES), *lists])
        cases = [node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
        tests += [case.name for case in cases if any(re.search(words, ast.unparse(line)) for line in case.body)]
    return files, tests


@pytest.mark.slow
def test_the_tests_of_all_policies_pass_for_the_new_ones(copy: Path) -> None:
    """Some 25 s of one core. Each case of these files that plays a policy compiled takes seconds, so those of the third
    policy, whose agent is an old one, are left to the laws."""
    files, tests = of_all_policies(copy)
    assert len(files) > 20
    chosen = " or ".join([*NEW, *tests])
    quick = f"({chosen}) and not (blocks-ucb and (test_delayed or test_game))"
    done = python(copy, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", "-rA", "-k", quick, *files)
    assert "::test_a_paused_arm_is_not_chosen_until_it_is_resumed[adap-greedy]" in done


def test_the_copy_is_in_the_style_of_the_repository(copy: Path) -> None:
    files = sorted({name for page in PLACES for name in named(page) if name.endswith(".py")})
    python(copy, "-m", "ruff", "check", *files)
    python(copy, "-m", "ruff", "format", "--check", *files)


def test_the_policies_are_found(copy: Path) -> None:
    shown = python(copy, "-m", "dpbandits", "policies")
    assert all(name in shown for name in NEW)


def test_the_distribution_is_known_everywhere(copy: Path) -> None:
    commands = re.findall(r"^    dpbandits (.*)$", (HOWTO / "add-a-distribution.md").read_text(), flags=re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert python(copy, "-m", "dpbandits", *re.sub("'", "", command).split())
    seen = python(
        copy,
        "-c",
        "import dpbandits as dp\n"
        "from dpbandits.environments import Arms\n"
        "a = dp.arms.triangular(0.2, high=0.8)\n"
        "assert abs(a.quantile(1 - a.above(0.37)) - 0.37) < 1e-12\n"
        "print(Arms.of('triangular(0.4,1)+triangular(0,1)').means)",
    )
    assert seen.strip() == "(0.7, 0.5)"


def test_the_bound_is_found_by_itself(copy: Path) -> None:
    settings = ["--arms", "0.9,0.6", "--epsilon", "1", "--horizon", "1000"]
    assert "ucb1-logarithmic" in python(copy, "-m", "dpbandits", "bounds", *settings, "--json")


@pytest.mark.slow
def test_the_experiment_is_found_by_itself(copy: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    python(copy, "-m", "dpbandits", "reproduce", "azize2022/fig9", "--scale", "quick", "--out", out)
    assert list((tmp_path / "out").rglob("*fig9*"))
