"""28 000 simulated users through HTTP, with delay and loss: their regret agrees with the engine's."""

from __future__ import annotations

import heapq
import http.client
import json
import math
import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from servers import Server, Zygote

import dpbandits as dp
from dpbandits.client import BernoulliCurator

MEANS = {"a": 0.9, "b": 0.6, "c": 0.3}
USERS, DELAY, LOSS = 1000, 20, 0.1
PAIRS = 14  # experiments for each policy: 2 * 14 * 1000 users

#: The means differ by more than this many standard errors with probability below 4e-6 for both policies together: of
#: 10^7 means of 14 runs, drawn from 200 000 simulated ones. (Regret is skewed: the normal approximation says 2e-7.)
DEVIATIONS = 5.3


def played(port: int, name: str, policy: str, seed: int) -> float:
    """The regret of one experiment: a response comes this many decisions after its own, or never."""
    chance = random.Random(seed)
    arms = list(MEANS)
    chance.shuffle(arms)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def post(path: str, body: Any) -> Any:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        content = json.loads(answer.read())
        assert answer.status < 300 or answer.status == 410, content
        return content

    asked = {"name": name, "arms": arms, "policy": policy, "epsilon": "1", "response_window": None}
    post("/v1/experiments", asked)
    curator = BernoulliCurator("1")
    on_the_way: list[tuple[int, str, int]] = []
    regret = 0.0
    for t in range(USERS):
        while on_the_way and on_the_way[0][0] < t:
            _, token, reward = heapq.heappop(on_the_way)
            if policy == "adap-ucb":
                post("/v1/rewards", {"token": token, "reward": reward})
            else:
                post("/v1/responses", {"token": token, "response": curator.respond(reward)})
        made = post(f"/v1/experiments/{name}/decisions", {})
        mean = MEANS[made["arm"]]
        regret += max(MEANS.values()) - mean
        if chance.random() >= LOSS:
            heapq.heappush(on_the_way, (t + DELAY, made["token"], int(chance.random() < mean)))
    connection.close()
    return regret


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["ldp-ucb-b", "adap-ucb"])
def test_regret_through_http_agrees_with_the_engine(policy: str, zygote: Zygote, tmp_path: Path) -> None:
    server = Server(zygote, tmp_path, f"sqlite:///{tmp_path}/test.db")
    server.start()
    found: list[float] = []
    try:

        def run(number: int) -> None:
            found.append(played(server.port, f"run{number}", policy, number))

        threads = [threading.Thread(target=run, args=(number,)) for number in range(PAIRS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        server.stop()
    assert len(found) == PAIRS
    given: dict[str, Any] = {"delay": f"constant({DELAY})", "loss": LOSS}
    arms = ",".join(map(str, MEANS.values()))
    trace = dp.simulate(policy, arms=arms, epsilon=1, horizon=USERS, runs=1000, seed=0, **given)
    expected, spread = trace.final_regret.mean(), trace.final_regret.std()
    tolerance = DEVIATIONS * spread * math.sqrt(1 / PAIRS + 1 / 1000)
    assert abs(np.mean(found) - expected) < tolerance, (np.mean(found), expected, tolerance)
