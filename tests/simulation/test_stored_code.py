"""Compiled code that is kept on disk is the code that was asked for, or it is not used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numba
import pytest
from played import settings

from dpbandits.errors import InputError
from dpbandits.policies import lookup
from dpbandits.simulation import Simulation, compiled, runs
from dpbandits.simulation.reach import reach
from dpbandits.simulation.store import KEEP_SECONDS, CodeStore

KEYS = [f"{number:064x}" for number in range(3)]
PLAYED = Path(__file__).with_name("played.py")


def start(cache: Path, *policies: str, first: str = "") -> subprocess.Popen[str]:
    """A process that plays these policies and checks them; ``first`` is code that it runs before."""
    code = f"import sys; sys.path.insert(0, {str(PLAYED.parent)!r}); sys.argv[1:] = {list(policies)!r}\n{first}\n"
    code += "import json, played; print(json.dumps(played.check(sys.argv[1:])))"
    environment = {**os.environ, "DPBANDITS_CACHE": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def outcomes(processes: list[subprocess.Popen[str]]) -> list[dict[str, int]]:
    """What each process counted, once all have ended; the error message of one that failed."""
    printed = [process.communicate(timeout=1200) for process in processes]
    for process, (_, err) in zip(processes, printed, strict=True):
        assert process.returncode == 0, err[-3000:]
    return [json.loads(out.splitlines()[-1]) for out, _ in printed]


def play(cache: Path, *policies: str) -> dict[str, int]:
    """Play these policies in a process, and check them."""
    return outcomes([start(cache, *policies)])[0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:10],
        lambda content: content[:-1],
        lambda content: content + b"x",
        lambda content: content[:60] + bytes([content[60] ^ 1]) + content[61:],
        lambda content: content[:-5] + b"y" + content[-4:],
        lambda content: b"\x80\x04N." * 100,
        lambda content: content.replace(b"code 1", b"code 0"),
    ],
)
def test_a_damaged_entry_is_not_read(tmp_path: Path, damage: Any) -> None:
    store = CodeStore(tmp_path)
    store.write(KEYS[0], b"machine code")
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert store.read(KEYS[0]) is None
    store.write(KEYS[0], b"again")
    assert store.read(KEYS[0]) == b"again"


def test_an_entry_under_another_name_is_not_read(tmp_path: Path) -> None:
    store = CodeStore(tmp_path)
    for key in KEYS[:2]:
        store.write(key, key.encode())
    one, two = (tmp_path / f"{key}.code" for key in KEYS[:2])
    one.rename(tmp_path / "aside")
    two.rename(one)
    (tmp_path / "aside").rename(two)
    assert [store.read(key) for key in KEYS] == [None, None, None]


def test_a_folder_that_cannot_be_used_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("somebody's own")
    (tmp_path / f"{KEYS[0]}.code").mkdir()
    for store in (CodeStore(tmp_path / "file"), CodeStore(tmp_path), CodeStore(Path("/proc/nothing"))):
        store.write(KEYS[0], b"machine code")
        assert store.read(KEYS[0]) is None
    assert (tmp_path / "file").read_text() == "somebody's own"
    assert not list(tmp_path.glob("*.part")), "what could not be written is left lying about"


def test_only_our_own_entries_are_removed(tmp_path: Path) -> None:
    store = CodeStore(tmp_path)
    for key in KEYS[:2]:
        store.write(key, b"machine code")
    (tmp_path / "precious.txt").write_text("somebody's own")
    old = time.time() - 2 * KEEP_SECONDS
    os.utime(tmp_path / f"{KEYS[0]}.code", (old, old))
    store.write(KEYS[2], b"machine code")
    assert [store.read(key) is None for key in KEYS] == [True, False, False]
    assert store.clear().entries == 2
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_code_of_another_user_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = CodeStore(tmp_path)
    store.write(KEYS[0], b"machine code")
    (file,) = tmp_path.iterdir()
    if os.getuid() == 0:
        os.chown(file, 12345, 12345)
    else:
        monkeypatch.setattr(os, "getuid", lambda: file.stat().st_uid + 1)
    assert store.read(KEYS[0]) is None


def test_two_processes_that_compile_at_once_do_not_exchange_their_code(tmp_path: Path) -> None:
    """Each looks for stored code, finds none, compiles, and then waits until the other is as far, before it writes."""
    policies = ("kl-ucb", "ldp-ucb-b")
    wait = """
import pathlib, time
from dpbandits.simulation.store import CodeStore
here, write = pathlib.Path({here!r}), CodeStore.write
def write_together(self, key, body):
    (here / {mine!r}).touch()
    while not (here / {other!r}).exists():
        time.sleep(0.01)
    write(self, key, body)
CodeStore.write = write_together
"""
    cache = tmp_path / "cache"
    processes = [
        start(cache, mine, first=wait.format(here=str(tmp_path), mine=mine, other=other))
        for mine, other in (policies, policies[::-1])
    ]
    assert outcomes(processes) == [{"found": 0, "compiled": 1}] * 2
    assert play(cache, *policies) == {"found": 2, "compiled": 0}


DAMAGED = """
from dpbandits.simulation.store import CodeStore
read, damaged = CodeStore.read, []
def read_damaged(self, key):
    file, others = self.path / f"{key}.code", [other.read_bytes() for other in sorted(self.path.glob("*.code"))]
    if key not in damaged:
        damaged.append(key)
        other = others[-1] if others else b"not an entry"
        file.write_bytes((other, other[: len(other) // 2], b"", other[:100] + bytes(100))[len(damaged) % 4])
    return read(self, key)
CodeStore.read = read_damaged
"""


@pytest.mark.slow
def test_policies_are_right_on_a_store_in_which_everything_is_damaged_or_exchanged(tmp_path: Path) -> None:
    """Each entry, when it is first looked for, holds another entry, half of one, nothing, or parts of one.

    One policy for each damage is compiled and stored again. That every policy refuses such entries is the next test;
    that every policy's compiled run is its Python run is a law of the conformance suite.
    """
    names = ("ucb1", "ldp-ucb-b", "adap-ucb", "dp-se")
    assert outcomes([start(tmp_path, *names, first=DAMAGED)]) == [{"found": 0, "compiled": 4}]
    assert play(tmp_path, *names) == {"found": 4, "compiled": 0}


def question(policy: str) -> tuple[Any, tuple[Any, ...]]:
    """What the store is asked for when a policy is played: the compiled loop, and the types that it is called with."""
    given = {name: value for name, value in settings(policy).items() if name not in ("runs", "workers")}
    simulation, asked = Simulation.of(policy, **given), []
    parts = runs._parts(simulation)
    runs.play_once(lambda *args: asked.append(args), parts, (), simulation.marks, False, runs.streams(0, 0))
    return compiled.compiled(runs._loop(simulation), *parts), tuple(map(numba.typeof, asked[0]))


def test_no_policy_takes_a_damaged_or_foreign_entry_for_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One loop is compiled. Its code, whole or damaged, is then put where each policy looks for its own code.

    A policy that finds nothing is compiled, as on a fresh store.
    """
    monkeypatch.setenv("DPBANDITS_CACHE", str(tmp_path))
    monkeypatch.setattr(compiled, "_dispatcher", compiled._dispatcher.__wrapped__)  # nothing of earlier tests
    names = lookup.names()
    first, signature = question(names[0])
    first.compile(signature)
    store, (file,) = CodeStore(tmp_path), tmp_path.iterdir()
    own, entry = first._cache.load_overload(signature, first.targetctx), file.read_bytes()
    assert own is not None
    body = store.read(file.stem)
    assert body is not None
    for name in names[1:]:
        loop, signature = question(name)
        context = loop.targetctx
        key = loop._cache._key(signature, context.codegen())
        assert key not in (None, file.stem), f"{name} is played by the code of {names[0]}"
        path = tmp_path / f"{key}.code"
        for damaged in (entry, entry[: len(entry) // 2], entry[:100] + bytes(100), b"not an entry", b""):
            path.write_bytes(damaged)
            assert loop._cache.load_overload(signature, context) is None, name
        for foreign in (body, body[:1000], b"", b"\x80\x04N."):  # with the right key and digest
            store.write(key, foreign)
            assert store.read(key) == foreign
            assert loop._cache.load_overload(signature, context) is None, name
        path.unlink()
        path.mkdir()  # unreadable
        assert loop._cache.load_overload(signature, context) is None, name
        path.rmdir()  # another policy may have the same parts


@pytest.mark.slow
def test_eight_processes_on_a_fresh_store(tmp_path: Path) -> None:
    names = ("ucb1", "ldp-ucb-b", "ldp-ucb-l", "adap-ucb", "dp-se")
    processes = [start(tmp_path, *(names[(number + k) % len(names)] for k in range(2))) for number in range(8)]
    outcomes(processes)
    assert play(tmp_path, *names) == {"found": 5, "compiled": 0}


OWN = """
from typing import NamedTuple
from dpbandits.policies.policy import Parts, published
from dpbandits.curators import Plain
IMPORT
class Stubborn(NamedTuple):
    arms: int
    def act(self, curator, t, rng):
        return self.arms - self.arms + choice(), 1, -1e300
@published('nobody')
def stubborn(arms: int) -> Parts:
    return Parts(Stubborn(arms), Plain.start(arms))
"""
RUN = """
import importlib, sys, dpbandits as dp
for name in sys.argv[1:]:
    own = importlib.import_module(name)
    trace = dp.simulate(own.stubborn, arms='0.9,0.5', horizon=50, runs=1, arm_order='given')
    print(trace.pulls[0, -1].argmax())
"""

#: What a user's policy has above its class, the module that it uses, if any, and what is in that; one names the arm.
EDITED: dict[str, tuple[str, str, str]] = {
    "own": ("def choice(): return ARM", "", ""),
    "function": ("from helper1 import choice", "helper1", "def choice(): return ARM"),
    "compiled": ("from helper2 import choice", "helper2", "from numba import njit\n@njit\ndef choice(): return ARM"),
    "constant": ("from helper3 import BEST\ndef choice(): return BEST", "helper3", "BEST = ARM"),
    "module": ("import helper4\ndef choice(): return helper4.BEST", "helper4", "BEST = ARM"),
    "default": ("import helper5\ndef choice(): return helper5.inner()", "helper5", "def inner(arm=ARM): return arm"),
    "deeper": ("import outer\ndef choice(): return outer.deeper.BEST", "deeper", "BEST = ARM"),
    "stdlib": ("import code\ndef choice(): return code.BEST", "code", "BEST = ARM"),  # also the name of one of Python's
}


def test_an_edit_of_a_users_policy_or_of_what_it_uses_is_compiled_anew(tmp_path: Path) -> None:
    """The second process finds the first one's compiled code, and must not use it. A comment changes nothing."""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "DPBANDITS_CACHE": str(tmp_path / "cache")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    (tmp_path / "outer.py").write_text("import deeper")
    for arm, comment, stored in (("0", "", 1), ("1", "", 2), ("1", "# a comment\n", 2)):
        for name, (imported, helper, text) in EDITED.items():
            for module, source in ((f"{name}_policy", OWN.replace("IMPORT", imported)), (helper, text)):
                if module:
                    (tmp_path / f"{module}.py").write_text(comment + source.replace("ARM", arm))
        names = [f"{name}_policy" for name in EDITED]
        done = subprocess.run(
            [sys.executable, "-c", RUN, *names], env=environment, capture_output=True, text=True, check=True
        )
        assert dict(zip(EDITED, done.stdout.split(), strict=True)) == dict.fromkeys(EDITED, arm)
        assert len(list((tmp_path / "cache").iterdir())) == stored * len(EDITED)


def test_the_digest_sees_what_a_run_can_reach_and_nothing_else() -> None:
    from dpbandits.agents import UCB
    from dpbandits.curators import LocalLaplace
    from dpbandits.simulation import loop

    source = "def f(x):\n    {doc}\n    return x + {number}\ndef g(part):\n    return part.step(1) + f(2)\n"

    def digest(doc: str = "'words'", number: str = "1", step: str = "2", other: str = "3") -> str | None:
        content: dict[str, Any] = {"__name__": "somewhere"}
        exec(source.format(doc=doc, number=number), content)
        methods: dict[str, Any] = {"step": eval(f"lambda self, x: x * {step}"), "other": eval(f"lambda self: {other}")}
        for name in methods:
            methods[name].__qualname__ = f"Part.{name}"
        return reach((content["g"],), (type("Part", (), {**methods, "__module__": "somewhere"}),)).digest

    same = digest()
    assert same is not None
    assert digest(doc="'other words'") == same
    assert digest(other="4") == same, "a method that is not called counts"
    assert digest(number="2") != same
    assert digest(step="3") != same
    names = {function.__name__ for function in reach((loop.play,), (UCB, LocalLaplace)).functions}
    assert {"play", "positive_log", "one_by_one"} <= names
    assert "positive" not in names, "what is only called at the start counts"


@pytest.mark.parametrize(
    "source",
    [
        "def make(arm):\n    def choice(): return arm\n    return choice\nchoice = make(ARM)",
        "def choice(arm=ARM): return arm",
        "def choice(*, arm=ARM): return arm",
        "def choice(): return TABLE[1][0]\nTABLE = (5, (ARM, 7))",
        "import numpy as np\nTABLE = np.array([ARM, 7])\ndef choice(): return TABLE[0]",
        "import enum\nclass Arm(enum.IntEnum):\n    BEST = ARM\ndef choice(): return Arm.BEST.value",
        "class Arms:\n    BEST = (ARM, 1)\ndef choice(): return Arms.BEST[0]",
        "class Arms:\n    @staticmethod\n    def best(): return ARM\ndef choice(): return Arms.best()",
        "class Base:\n    def best(self): return ARM\nclass Arms(Base):\n    def best(self): return super().best()\n"
        "def choice(): return Arms().best()",
        "class Arms:\n    def best(self): return ARM\ndef choice(): return getattr(Arms(), 'best')()",
    ],
)
def test_the_digest_sees_wherever_a_value_is_kept(source: str) -> None:
    def digest(arm: str) -> str | None:
        content: dict[str, Any] = {"__name__": "somewhere"}
        exec(source.replace("ARM", arm), content)
        assert content["choice"]() == int(arm)
        return reach((content["choice"],)).digest

    assert digest("0") == digest("0") is not None
    assert digest("0") != digest("1")


@pytest.mark.parametrize("body", ["import json\n    return json", "return eval('1')", "return [1].index"])
def test_code_that_looks_things_up_by_itself_is_not_stored(body: str) -> None:
    content: dict[str, Any] = {"__name__": "somewhere", "KEPT": [1].index}
    exec(f"def f():\n    {body if 'index' not in body else 'return KEPT'}", content)
    assert reach((content["f"],)).digest is None


def test_what_cannot_be_described_is_not_stored(tmp_path: Path) -> None:
    class Odd:
        pass

    content: dict[str, Any] = {"__name__": "somewhere", "odd": Odd()}
    exec("def f(x):\n    return odd", content)
    assert reach((content["f"],)).digest is None


class Counts(NamedTuple):
    """A part with a method that has the name of another part's field, and the reverse."""

    mean: float

    def counts(self, a: int, b: int) -> int:
        return a + b + int(self.mean)


def test_names_of_parts_do_not_meet() -> None:
    """``Batch`` has a field ``counts`` and a method ``mean``; ``Elimination`` has a method ``log``."""
    import dpbandits as dp

    def use(part: Any) -> int:
        return int(part.counts(1, 2))

    assert compiled.compiled(use, Counts(4.0))(Counts(4.0)) == 7
    assert dp.simulate("adap-ucb", arms="0.9,0.6", epsilon=1, horizon=100, runs=1).runs == 1
    assert compiled.compiled(use, Counts(4.0))(Counts(4.0)) == 7


DEFINED = """
from typing import NamedTuple
from dpbandits.policies.policy import Parts, published
from dpbandits.curators import Plain
class Stubborn(NamedTuple):
    arms: int
    def act(self, curator, t, rng):
        return ARM, 1, -1e300
@published('nobody')
def stubborn(arms: int) -> Parts:
    return Parts(Stubborn(arms), Plain.start(arms))
"""


def defined(arm: str, module: str = "__main__") -> dict[str, Any]:
    """What a cell of a notebook, or a module, defines: a policy that plays one arm."""
    content: dict[str, Any] = {"__name__": module}
    exec(DEFINED.replace("ARM", arm), content)
    return content


def favourite(content: dict[str, Any]) -> int:
    """The arm that the policy plays, compiled."""
    import dpbandits as dp

    trace = dp.simulate(content["stubborn"], arms="0.9,0.5,0.1", horizon=50, runs=1, arm_order="given")
    return int(trace.pulls[0, -1].argmax())


def test_classes_of_the_same_name_with_the_same_fields_run_their_own_code() -> None:
    """In two modules, and defined again in a notebook."""
    cells = [defined("0"), defined("1"), defined("2", "own"), defined("1", "own2")]
    assert [favourite(cell) for cell in (*cells, *cells[::-1])] == [0, 1, 2, 1, 1, 2, 1, 0]


def test_what_was_changed_after_it_was_compiled_is_refused_and_not_played_as_it_was() -> None:
    cell = defined("K")
    cell["K"] = 0
    assert favourite(cell) == 0
    cell["K"] = 0  # nothing has changed
    assert favourite(cell) == 0
    cell["K"] = 1
    with pytest.raises(InputError, match=r"policy: K in __main__.Stubborn.act was changed after it was compiled; run"):
        favourite(cell)
    again = defined("K")
    again["K"] = 1
    assert favourite(again) == 1
    again["Stubborn"].act = defined("2")["Stubborn"].act
    with pytest.raises(InputError, match=r"policy: act in __main__.Stubborn was changed after it was compiled"):
        favourite(again)


def test_a_pipe_in_the_place_of_an_entry_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"{KEYS[0]}.code")
    store = CodeStore(tmp_path)
    assert store.read(KEYS[0]) is None
    store.write(KEYS[0], b"machine code")
    assert store.read(KEYS[0]) == b"machine code"
