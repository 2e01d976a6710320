"""The planner beside a form: a few simulations in a process of their own, which is ended when it takes too long."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

from dpbandits.errors import InputError
from dpbandits.service.problems import Refusal

__all__ = ["MOST_ROUNDS", "STRONG", "Planner", "answer"]

LIMIT = 60.0  # seconds for an answer; on a new machine the policies are compiled first, and what is compiled is kept
WAITING = 4  # requests that may wait for it
RUNS = 20
MOST_ROUNDS = 10_000_000
STEPS = (0.25, 0.5, 1.0, 2.0, 4.0)  # multiples of the epsilon that is asked about
#: A strong policy of each trust model, to say what trust changes: docs/papers/strongest.md.
STRONG = {"central": "dp-glr-imed", "local": "ldp-imed-b"}


def answer(given: dict[str, Any]) -> dict[str, Any]:
    """What a policy loses, what privacy and trust change, and the loss at other epsilons.

    >>> found = answer({"arms": 2, "best": 0.5, "gap": 0.3, "traffic": 100, "days": 10, "policy": "ldp-ucb-b",
    ...                 "epsilon": 1.0})
    >>> found["trust"], found["other"]["trust"], [point["epsilon"] for point in found["curve"]]
    ('local', 'central', [0.25, 0.5, 1.0, 2.0, 4.0])
    """
    from dpbandits.planning.grid import Outcome, play, without_privacy
    from dpbandits.planning.question import Question, ask
    from dpbandits.policies import lookup

    def shown(outcome: Outcome, question: Question) -> dict[str, Any]:
        return {
            "policy": outcome.policy,
            "trust": outcome.trust,
            "epsilon": outcome.epsilon,
            "lost": outcome.regret,
            "error": 2.0 * outcome.stderr,
            "loss": question.loss(outcome.regret),
            "one_in_twenty": outcome.tail.quantile,
            "settled": outcome.settled,
        }

    name, epsilon = given.pop("policy"), given.pop("epsilon")
    if lookup.traits(name).levels is not None:
        raise InputError("policy", f"must have one epsilon for all users here, got {name}: see dpbandits plan")
    asked = {**given, "arms": str(given["arms"]), "runs": RUNS, "seed": 0}
    private = lookup.takes(name, "epsilon")
    if private and epsilon is None:
        raise InputError("epsilon", f"is required by {name}, got none")
    trust = lookup.sample(name).guarantee.trust
    question = ask(**asked, epsilon=epsilon if private else 1.0)
    main = play(question, name, epsilon if private else None, question.refuse, 1)
    other = "central" if trust == "local" else "local"
    rival = play(question, STRONG[other], epsilon, question.refuse, 1) if private else None
    curve = [
        main if step == 1.0 else play(question, main.candidate, epsilon * step, question.refuse, 1)
        for step in (STEPS if private else ())
    ]
    return {
        **shown(main, question),
        "trust": trust,
        "rounds": question.horizon,
        "days": given.get("days"),
        "runs": RUNS,
        "paid": max(question.arms.means) * question.horizon,
        "free": shown(without_privacy(question, main, 1), question) if private else None,
        "other": None if rival is None else shown(rival, question),
        "curve": [shown(one, question) for one in curve],
        "at_random": {"lost": question.at_random, "loss": question.loss(question.at_random)},
        "caution": main.caution,
    }


class Planner:
    """Asks the other process, one question at a time."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.limit = limit
        self._lock, self._waiting = threading.Lock(), threading.Semaphore(WAITING)
        self._process: subprocess.Popen[str] | None = None

    def ask(self, given: dict[str, Any]) -> dict[str, Any]:
        """The answer, or a problem: which field is wrong, or that it takes too long."""
        if not self._waiting.acquire(blocking=False):
            raise Refusal(503, "the planner is busy: try again", headers={"retry-after": "1"})
        try:
            with self._lock:
                line = self._said(json.dumps(given))
        finally:
            self._waiting.release()
        if not line:
            detail = (
                f"the planner was ended, or took longer than {self.limit:g} s: try again, or ask about less traffic"
            )
            raise Refusal(503, detail, headers={"retry-after": "1"})
        found: dict[str, Any] = json.loads(line)
        if "refused" in found:
            raise InputError(*found["refused"])
        return found

    def _said(self, question: str) -> str:
        """What the process answers; nothing where it was ended."""
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "dpbandits.service.planner"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            )  # fmt: skip
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        end = threading.Timer(self.limit, process.kill)
        end.start()
        try:
            process.stdin.write(question + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        finally:
            end.cancel()
        if not line:
            self.close()  # and wait until it has ended: the next question starts another one
        return line

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            with suppress(OSError):  # what could not be written to it
                self._process.communicate()
            self._process = None


def main() -> None:
    """Answer questions from the standard input, a line each."""
    os.nice(5)  # decisions come first
    for line in sys.stdin:
        try:
            found: dict[str, Any] = answer(json.loads(line))
        except InputError as error:
            found = {"refused": [error.parameter, error.text]}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
