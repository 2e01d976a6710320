"""Judge every claim with several seeds, and write how far the verdicts agree into docs/papers/README.md.

Usage: ``python tools/seeds.py FOLDER quick=8 paper=3`` judges with the seeds 0 to 7 at the quick scale, and 0 to 2 at
the paper's. Finished runs are kept in FOLDER, so the command can be interrupted. The status is 1 if a claim is
reproduced with one seed and not with another.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dpbandits.experiments.claims import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Finding
from dpbandits.experiments.engines import engine
from dpbandits.experiments.established import CHANGED
from dpbandits.experiments.figures import figures
from dpbandits.experiments.reproduce import seeded
from dpbandits.experiments.results import Results
from dpbandits.experiments.work import fill, traces
from dpbandits.formats import plural

PAGE = Path(__file__).parents[1] / "docs" / "papers" / "README.md"
BEGIN, END = "<!-- seeds: written by tools/seeds.py -->", "<!-- end of seeds -->"


class Judged(NamedTuple):
    """The verdicts of one seed: of claims, and of their comparisons; and how often something failed unexpectedly."""

    claims: dict[str, str]
    comparisons: dict[str, str]
    failed: list[str]


def judged(found: Mapping[str, Sequence[Finding]]) -> Judged:
    """The verdicts of one seed, from the findings by figure."""
    claims, comparisons, failed = dict[str, str](), dict[str, str](), list[str]()
    for figure, findings in found.items():
        for one in findings:
            name = f"{figure}: {one.claim.name}"
            failed += [name] if one.fails else []
            if one.claim is not CHANGED:
                claims[name] = one.verdict
                comparisons |= {f"{name}, {part.name}" if part.name else name: part.verdict for part in one.comparisons}
    return Judged(claims, comparisons, failed)


def play(folder: Path, scale: str, seed: int) -> Judged:
    """Simulate and judge everything with one seed."""
    folder.mkdir(parents=True, exist_ok=True)
    cells = {figure.path: seeded(figure.cells(scale), seed) for figure in figures()}
    with engine(None, None) as where, Results(folder / f"{scale}-{seed}.sqlite") as results:
        fill([cell for each in cells.values() for cell in each.values()], results, where)
        return judged({figure.path: figure.score(traces(cells[figure.path], results), scale) for figure in figures()})


def flips(verdicts: Sequence[Mapping[str, str]]) -> list[str]:
    """What is reproduced with one seed and not with another.

    >>> flips([{"a": "reproduced", "b": "reproduced"}, {"a": "not reproduced", "b": "cannot be decided"}])
    ['a']
    """
    return [name for name in verdicts[0] if {REPRODUCED, NOT_REPRODUCED} <= {one[name] for one in verdicts}]


def summary(found: Mapping[str, Sequence[Judged]]) -> str:
    """The table, and the claims whose verdict is open with some seeds."""
    rows = [
        "| scale | seeds, from 0 | claims | the same verdict with every seed | open with some | reproduced with one, "
        "not with another | comparisons | comparisons reproduced with one seed, not with another |",
        "|---|---|---|---|---|---|---|---|",
    ]
    unsure = []
    for scale, several in found.items():
        verdicts = [one.claims for one in several]
        counts = {name: Counter(one[name] for one in verdicts) for name in verdicts[0]}
        turned, parts = flips(verdicts), flips([one.comparisons for one in several])
        some = {name: count for name, count in counts.items() if len(count) > 1 and name not in turned}
        same = sum(len(count) == 1 for count in counts.values())
        rows.append(
            f"| {scale} | {len(several)} | {len(counts)} | {same} | {len(some)} | {len(turned)} | "
            f"{len(several[0].comparisons)} | {len(parts)} |"
        )
        for name, count in some.items():
            other = next(verdict for verdict in count if verdict != UNDECIDED)
            unsure.append(
                f"* {scale}, {name}: {other} with {plural(count[other], 'seed')}, open with {count[UNDECIDED]}."
            )
        unsure += [f"* **{scale}, {name}: its verdict depends on the seed.**" for name in dict.fromkeys(turned + parts)]
        failed = Counter(name for one in several for name in one.failed)
        unsure += [
            f"* {scale}, {name}: exit status 1 with {plural(times, 'seed')}." for name, times in sorted(failed.items())
        ]
    everywhere = flips([one.claims for several in found.values() for one in several])
    if len(found) > 1:
        what = f"{plural(len(everywhere), 'claim')}{': ' if everywhere else ''}{', '.join(everywhere)}"
        unsure.append(f"* Reproduced at one scale and not at the other: {what}.")
    return "\n".join([*rows, "", *unsure])


def main(folder: Path, asked: Mapping[str, int]) -> int:
    found = {scale: [play(folder, scale, seed) for seed in range(seeds)] for scale, seeds in asked.items()}
    text = PAGE.read_text(encoding="utf-8")
    filled = f"{BEGIN}\n{summary(found)}\n{END}"
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: filled, text, flags=re.DOTALL), encoding="utf-8")
    print(summary(found))
    return int(bool(flips([one.claims for several in found.values() for one in several])))


if __name__ == "__main__":
    given = dict(word.split("=") for word in sys.argv[2:]) or {"quick": "8"}
    sys.exit(main(Path(sys.argv[1]), {scale: int(seeds) for scale, seeds in given.items()}))
