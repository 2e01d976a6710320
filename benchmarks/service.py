"""The service under load: what a decision and a response cost beside an empty POST, and what is done at once.

    python benchmarks/service.py [--seconds 2] [--write]

Every answer goes out after its commit has reached the disk. Numbers are ratios within one run on one machine. What is
compared takes turns in short rounds, since other machines on the same host come and go; a ratio is the mean over the
rounds, with its standard error. wrk (Debian) makes the load and takes its share of the processor, which is accounted
for. ``--write`` puts the table into docs/howto/deploy.md.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from dpbandits.service.books import new_decision
from dpbandits.service.rows import ANSWERS
from dpbandits.service.store import Database

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "service"))

CONNECTIONS = 256
ROUNDS = 12
MOST_SINGLES, MOST_LISTS = 30_000, 300  # a second that are prepared; no response is sent twice
PAGE = Path(__file__).parents[1] / "docs" / "howto" / "deploy.md"
LISTS, BARE, EMPTY_POST = "respond, lists of 1000", "the bare driver", "an empty POST"
ONE, TWO = "decide, PostgreSQL, one worker", "decide, PostgreSQL, two workers"
#: What is compared, with what, in which words, and the target.
TARGETS = (
    ("decide, one bit", EMPTY_POST, "of an empty POST", 0.6),
    ("decide, stints", EMPTY_POST, "of an empty POST", 0.6),
    ("respond, one bit", EMPTY_POST, "of an empty POST", 0.6),
    ("decide, leases of 1000", "decide, stints", "times the single rate", 20),
    (LISTS, "respond, one bit", "times the single rate", 20),
    (LISTS, BARE, "of the bare driver (group commit)", 0.5),
    (TWO, ONE, "times one worker", 1.5),
)
EMPTY = """
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def empty(request):
    await request.body()
    return Response(b"{}", media_type="application/json")

app = Starlette(routes=[Route("/", empty, methods=["POST"])])

async def bare(scope, receive, send):
    if scope["type"] != "http":
        return
    message = await receive()
    while message.get("more_body"):
        message = await receive()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}"})
"""
#: Each line of the file is the body of a request, which is sent once; when all are sent, the server refuses the rest.
BODIES = """
local bodies = io.open("{bodies}")
request = function()
  return wrk.format("POST", "/v1/responses", {{["content-type"] = "application/json"}}, bodies:read("*l") or "")
end
"""
POST = """
wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
wrk.body = '{body}'
"""


def cpu(pids: list[int]) -> float:
    """Seconds of processor time that processes have used."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory(pid: int) -> float:
    """MiB of a process that are in memory."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024  # type: ignore[index]


def wrk(url: str, script: str, seconds: float, connections: int = CONNECTIONS) -> dict[str, float]:
    """Requests a second, p99 in milliseconds, and cores that wrk took; every answer must be a 200."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [
            "wrk",
            "-t1",
            f"-c{connections}",
            f"-d{round(seconds)}s",
            "--latency",
            "--timeout",
            "10s",
            "-s",
            file.name,
            url,
        ]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])  # type: ignore[index]
    value, unit = re.search(r"99%\s+([\d.]+)(us|ms|s)", text).groups()  # type: ignore[union-attr]
    p99 = float(value) * {"us": 0.001, "ms": 1.0, "s": 1000.0}[unit]
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    if bad:
        raise SystemExit(f"{bad[1]} answers were no 200; if all bodies were sent, prepare more")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"rate": rate, "p99": p99, "wrk": spent / seconds}


@contextmanager
def running(command: list[str], port: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    with open(folder / "log", "ab") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
            break
        time.sleep(0.1)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def post(port: int, path: str, body: Any) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def experiment(port: int, name: str, policy: str) -> None:
    post(port, "/v1/experiments", {"name": name, "arms": ["a", "b", "c", "d", "e"], "policy": policy, "epsilon": "1"})


def write_bodies(file: Path, port: int, requests: int, *, lists: bool) -> None:
    """Requests with a response to each of 1000 decisions, or to one."""
    with open(file, "w") as lines:
        for _ in range(requests if lists else -(-requests // 1000)):
            leased = post(port, "/v1/experiments/bits/decisions", {"count": 1000})["decisions"]
            bodies = [{"token": one["token"], "response": 1} for one in leased]
            lines.writelines(f"{json.dumps(body)}\n" for body in ([bodies] if lists else bodies))


def bare_driver(folder: Path, size: int, seconds: float) -> dict[str, float]:
    """Rows a second that sqlite3 itself commits to the disk, in batches of ``size``, and the cores that it takes.

    The table and the rows are those of the service. What it takes to make the rows is not counted.
    """
    file, columns = folder / "bare.db", ANSWERS
    if not file.exists():
        store = Database(f"sqlite:///{file}")
        store.migrate()
        store.close()
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    insert = f"insert into answers ({', '.join(columns)}) values ({', '.join('?' * len(columns))})"
    stored, spent, used = 0, 0.0, 0.0
    while spent < seconds:
        now = time.time_ns() // 1_000_000
        name = new_decision(now)
        batch = [(1, name, n, n % 5, stored + n, 0, 0, now, now, "used", 1, None, None, True) for n in range(size)]
        began, before = time.perf_counter(), time.process_time()
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(insert, batch)
        connection.execute("COMMIT")
        spent += time.perf_counter() - began
        used += time.process_time() - before
        stored += size
    connection.close()
    return {"rate": stored / spent, "server": used / spent}


def embedded(seconds: float) -> list[dict[str, Any]]:
    """SQLite, one process."""
    from postgres import free_port

    found: list[dict[str, Any]] = []
    python = [sys.executable, "-m"]
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "empty.py").write_text(EMPTY)
        port, starlette, bare = free_port(), free_port(), free_port()
        options = ["--loop", "uvloop", "--http", "httptools", "--log-level", "critical", "--lifespan", "off"]
        with (
            running([*python, "dpbandits", "serve", "--port", str(port)], port, folder) as server,
            running([*python, "uvicorn", "empty:app", "--port", str(starlette), *options], starlette, folder) as empty,
            running([*python, "uvicorn", "empty:bare", "--port", str(bare), *options], bare, folder) as nothing,
        ):
            for name, policy in (("bits", "ldp-ucb-b"), ("stints", "adap-klucb")):
                experiment(port, name, policy)

            def measured(
                what: str, pid: int, url: str, script: str, each: int = 1, connections: int = CONNECTIONS
            ) -> None:
                before = cpu([pid])
                load = wrk(url, script, seconds, connections)
                used = (cpu([pid]) - before) / seconds
                found.append({"what": what, "each": each, "server": used, **load})

            url, post_empty = f"http://127.0.0.1:{port}", POST.format(body="{}")
            lease = POST.format(body='{"count": 1000}')
            for _ in range(ROUNDS):  # what is compared takes turns, so that the load of others hits all alike
                write_bodies(folder / "singles", port, int(MOST_SINGLES * seconds), lists=False)
                write_bodies(folder / "lists", port, int(MOST_LISTS * seconds), lists=True)
                measured("an empty POST without a framework", nothing.pid, f"http://127.0.0.1:{bare}/", post_empty)
                measured(EMPTY_POST, empty.pid, f"http://127.0.0.1:{starlette}/", post_empty)
                measured("decide, one bit", server.pid, f"{url}/v1/experiments/bits/decisions", post_empty)
                measured("decide, stints", server.pid, f"{url}/v1/experiments/stints/decisions", post_empty)
                measured("respond, one bit", server.pid, url, BODIES.format(bodies=folder / "singles"))
                measured("decide, leases of 1000", server.pid, f"{url}/v1/experiments/stints/decisions", lease, 1000, 8)
                before = commits(port)
                measured(LISTS, server.pid, url, BODIES.format(bodies=folder / "lists"), 1000, 8)
                stored, times = (after - earlier for after, earlier in zip(commits(port), before, strict=True))
                size = round(stored / times)
                load = bare_driver(folder, size, seconds / 2)
                found.append({"what": BARE, "each": 1, "size": size, **load})
            held = memory(server.pid)
            for _ in range(1000):
                post(port, "/v1/experiments/stints/decisions", {"count": 1000})
            found.append({"what": "memory", "before": held, "after": memory(server.pid)})
    return found


def commits(port: int) -> tuple[float, float]:
    """(rows, commits) so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    total, count = (re.search(rf"dpbandits_commit_rows_{what} ([\d.e+]+)", text) for what in ("sum", "count"))
    return float(total[1]), float(count[1])  # type: ignore[index]


def workers(seconds: float) -> list[dict[str, Any]]:
    """PostgreSQL with one worker and with two."""
    from postgres import Postgres, free_port

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        database = Postgres()
        try:
            command = [sys.executable, "-m", "dpbandits", "serve"]
            with contextlib.ExitStack() as stack:
                servers = []
                for count in (1, 2):
                    port = free_port()
                    options = ["--port", str(port), "--store", database.database(), "--workers", str(count)]
                    server = stack.enter_context(running([*command, *options], port, folder))
                    experiment(port, "bits", "ldp-ucb-b")
                    servers.append((count, port, server.pid))
                time.sleep(2)
                for _, (count, port, pid) in itertools.product(range(ROUNDS), servers):
                    pids = [pid, *children(pid)]
                    postgres = [database.process.pid, *children(database.process.pid)]  # type: ignore[union-attr]
                    before, stored = cpu(pids), cpu(postgres)
                    found = wrk(
                        f"http://127.0.0.1:{port}/v1/experiments/bits/decisions", POST.format(body="{}"), seconds
                    )
                    used, kept = (cpu(pids) - before) / seconds, (cpu(postgres) - stored) / seconds
                    rows.append({"what": ONE if count == 1 else TWO, "server": used, "postgres": kept, **found})
        finally:
            database.close()
    return rows


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]


def paired(rows: list[dict[str, Any]], what: str, other: str) -> tuple[float, str]:
    """The items a second of one beside those of another: the mean over rounds, and that with its standard error."""
    rates = [[row["rate"] * row.get("each", 1) for row in rows if row["what"] == name] for name in (what, other)]
    ratios = [one / two for one, two in zip(*rates, strict=True)]
    ratio, error = mean(ratios), stdev(ratios) / math.sqrt(len(ratios))
    return ratio, f"{ratio:.{1 if ratio > 10 else 2}f} ± {error:.{1 if ratio > 10 else 2}f}"


def together(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What was measured in all rounds: means, and the worst p99."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["what"], []).append(row)
    means = ("rate", "server", "wrk", "postgres", "size")
    return {
        what: {
            **some[0],
            **{name: mean(row[name] for row in some) for name in means if name in some[0]},
            **({"p99": max(row["p99"] for row in some)} if "p99" in some[0] else {}),
        }
        for what, some in found.items()
    }


def verdicts(rows: list[dict[str, Any]]) -> str:
    """The table of what was asked for."""
    measured = {row["what"] for row in rows}
    lines = ["| | measured | target | |", "|---|---|---|---|"]
    for what, other, words, target in TARGETS:
        if {what, other} <= measured:
            ratio, shown = paired(rows, what, other)
            lines.append(f"| {what} | {shown} {words} | {target} | {said(ratio >= target)} |")
    kept = next(row for row in rows if row["what"] == "memory")
    grown = kept["after"] / kept["before"] - 1
    shown = f"{kept['before']:.0f} MiB, then {kept['after']:.0f} MiB"
    lines.append(f"| memory, 10^6 decisions later | {shown} | flat | {said(grown < 0.05)} |")
    return "\n".join(lines)


def rates(rows: list[dict[str, Any]]) -> str:
    """The table of rates, and of what they took."""
    lines = ["| | items a second | p99 | processor time of an item | cores |", "|---|---|---|---|---|"]
    for what, row in together(rows).items():
        if "rate" in row:
            each = row.get("each", 1)
            name = f"{what}, {row['size']:,.0f} rows in a commit" if "size" in row else what
            p99 = f"{row['p99']:.0f} ms" if "p99" in row else ""
            spent = f"{1e6 * row['server'] / (row['rate'] * each):.{0 if each == 1 and p99 else 1}f} µs"
            cores = [f"{row['server']:.2f}"]
            cores += [f"{other} {row[other]:.2f}" for other in ("wrk", "postgres") if other in row]
            lines.append(f"| {name} | {row['rate'] * each:,.0f} | {p99} | {spent} | {', '.join(cores)} |")
    return "\n".join(lines)


def said(holds: bool) -> str:
    return "holds" if holds else "**missed**"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--without-postgresql", action="store_true")
    given = parser.parse_args()
    rows = embedded(given.seconds)
    rows += [] if given.without_postgresql else workers(given.seconds)
    for row in rows:
        print(row, file=sys.stderr)
    load = os.getloadavg()[1]
    others = f"{os.cpu_count()} cores; processes that wanted to run, those of this benchmark among them: {load:.0f}"
    runs = f"{ROUNDS} rounds of {given.seconds:g} seconds each, in turns; p99 of the worst"
    how = f"{CONNECTIONS} connections; {runs}; {others}."
    made = f"{verdicts(rows)}\n\nThe rates behind these ratios. {how}\n\n{rates(rows)}"
    print(made)
    if given.write:
        page = PAGE.read_text()
        start, end = "<!-- load: written by benchmarks/service.py -->", "<!-- end of load -->"
        head, tail = page.split(start)[0], page.split(end)[1]
        PAGE.write_text(f"{head}{start}\n{made}\n{end}{tail}")


if __name__ == "__main__":
    main()
