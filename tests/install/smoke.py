"""What must work without any extra: run by a Python that has nothing but the package's own dependencies."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

#: Packages that only extras bring.
EXTRAS = [
    "matplotlib",
    "pandas",
    "pyarrow",
    "joblib",
    "jinja2",
    "dask",
    "distributed",
    "cvxpy",
    "opendp",
    "river",
    "gymnasium",
    "fastapi",
    "mkdocs",
]

#: Commands that need no extra.
BASE = {
    "policies": 0,
    "simulate adap-ucb --arms 0.9,0.6 --epsilon 1 --horizon 1000 --runs 2 --json": 0,
    "bounds --arms 0.9,0.6 --epsilon 1 --horizon 1000": 0,
    "plan --arms 0.9,0.6 --epsilon 1,2 --horizon 200 --runs 2 --policy adap-ucb": 0,
    "audit policy adap-ucb --epsilon 1 --exact --horizon 4": 0,
    "cache": 0,
}
#: Commands that need an extra, and which: they say so before any work.
NEEDY = {
    "simulate ucb1 --arms 0.9,0.6 --horizon 1000 --out x": "plot",
    "plan --arms 0.9,0.6 --epsilon 1 --horizon 200 --out x": "plot",
    "reproduce ren2020/fig1 --out x": "reproduce",
}
#: The same digits on every Python: the command of BASE.
REGRET = 76.8
SESSION = (
    "import dpbandits as dp;"
    "session = dp.Session('ldp-ucb-b', arms=['a', 'b'], epsilon='1');"
    "decision = session.ask();"
    "session.tell(decision, session.device().respond(decision, reward=1));"
    "assert dp.Session.thaw(session.freeze()).rounds == 1"
)
#: Makes what extras bring look as if it were not installed.
HIDE = f"""
import importlib.abc, importlib.util, sys
hidden = {EXTRAS!r}
class Hide(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in hidden:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hide())
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in hidden else find(name, *rest)
"""


def run(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Python code in a process without extras, in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([sys.executable, "-c", HIDE + code, *words], cwd=folder, capture_output=True, text=True)


def check() -> list[str]:
    """What does not work; empty if all is well."""
    wrong, main = [], "from dpbandits.cli import main; main()"
    for line, status in BASE.items():
        done = run(main, *line.split())
        if done.returncode != status or "dpbandits:" in done.stderr or not done.stdout:  # there may be progress
            wrong.append(f"{line}: status {done.returncode}, {done.stderr}")
        elif "--json" in line:
            regret = json.loads(done.stdout)["final"]["regret_mean"]
            if abs(regret - REGRET) > 1e-9:
                wrong.append(f"{line}: regret {regret!r}, not {REGRET!r}")
    for line, extra in NEEDY.items():
        done = run(main, *line.split())
        if done.returncode != 2 or f"[{extra}]" not in done.stderr or done.stdout:
            wrong.append(f"{line}: status {done.returncode}, {done.stderr}")
    done = run(SESSION)
    if done.returncode:
        wrong.append(f"a session: {done.stderr}")
    return wrong


if __name__ == "__main__":
    found = check()
    print("\n".join(found) or f"all is well on Python {sys.version.split()[0]}")
    sys.exit(bool(found))
