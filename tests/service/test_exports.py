"""Exports: page by page, for those who may still read, without holding up others."""

from __future__ import annotations

import asyncio
import io
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow.parquet as pq
import pytest
from calls import create, decide, read, served, wait_for
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from dpbandits.service import access, export
from dpbandits.service.export import pages
from dpbandits.service.problems import Refusal
from dpbandits.service.reading import _csv, _shown
from dpbandits.service.service import EXPORTS


def reader(client: TestClient) -> Callable[[], Any]:
    """How pages of an export are read."""
    service = served(client)
    return lambda: _shown(service, service.find("shop").experiment.id)


def test_a_download_that_is_broken_off_holds_nothing(embedded: TestClient) -> None:
    create(embedded)
    for _ in range(3):
        decide(embedded, count=1000)
    begun = [pages(reader(embedded)) for _ in range(40)]
    assert all(len(next(download)) > 0 for download in begun)  # and nobody reads on
    assert read(embedded, "summary")["decisions"] == 3000
    served(embedded)._read_elsewhere()


def test_a_few_exports_are_made_at_the_same_time(embedded: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    create(embedded)
    decide(embedded, count=3)
    guard, running, most = threading.Lock(), 0, 0

    def slow(pages: Any) -> Any:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        wait_for(lambda: most >= EXPORTS)  # the first one waits for others
        time.sleep(0.2)  # and one more would come in this time
        with guard:
            running -= 1
        return export.as_parquet(pages)

    monkeypatch.setattr("dpbandits.service.reading.as_parquet", slow)
    with ThreadPoolExecutor(5) as threads:
        found = list(threads.map(lambda _: embedded.get("/v1/experiments/shop/export.parquet"), range(5)))
    assert [pq.read_table(io.BytesIO(one.content)).num_rows for one in found] == [3] * 5
    assert most == EXPORTS


def test_exports_are_made_page_by_page(embedded: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "MOST_LINES", 1000)
    monkeypatch.setattr(export, "GROUP", 1500)
    create(embedded, policy="adap-ucb")  # whose leases are one row each
    assert pq.read_table(io.BytesIO(embedded.get("/v1/experiments/shop/export.parquet").content)).num_rows == 0
    leases = [decide(embedded, count=count)["decisions"] for count in (400, 500, 600, 1000, 700)]
    leased = [one["decision"] for lease in leases for one in lease]
    read_in_pages = pages(reader(embedded))
    assert [len(page) for page in read_in_pages] == [900, 600, 1000, 700]
    file = pq.ParquetFile(io.BytesIO(embedded.get("/v1/experiments/shop/export.parquet").content))
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [1500, 1700]
    assert file.read()["decision"].to_pylist() == leased
    lines = embedded.get("/v1/experiments/shop/export.csv").text.splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == leased


def test_a_csv_breaks_off_when_its_key_is_revoked(embedded: TestClient) -> None:
    create(embedded)
    decide(embedded)
    service = served(embedded)
    number = service.find("shop").experiment.id

    async def parts(key: str | None) -> list[bytes]:
        return [part async for part in _csv(service, number, key)]

    assert len(asyncio.run(parts(None))) == 2
    with service.store.engine.begin() as connection:
        read_key = access.create(connection, "someone", "read").split("_")[1]
    service._reread_keys()  # as it does every two seconds
    assert len(asyncio.run(parts(read_key))) == 2
    for key in ("revoked", None):
        with pytest.raises(Refusal, match="revoked"):
            asyncio.run(parts(key))


def test_a_parquet_file_is_not_made_for_a_key_that_is_revoked_while_it_waits(embedded: TestClient) -> None:
    create(embedded)
    decide(embedded)
    service = served(embedded)
    assert embedded.portal is not None
    for _ in range(EXPORTS):  # others are made
        embedded.portal.call(service.exporting.acquire)
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(embedded.get, "/v1/experiments/shop/export.parquet")
        wait_for(lambda: bool(service.exporting._waiters))
        service.guarded = True  # as if its key was revoked meanwhile
        for _ in range(EXPORTS):
            embedded.portal.call(service.exporting.release)
        answer = waits.result(60)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


def test_an_export_goes_on_when_an_arm_is_added(embedded: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "PAGE", 1)
    create(embedded)
    decide(embedded, decision="a")
    begun = pages(reader(embedded))
    assert [row[0] for row in next(begun)] == ["a"]
    assert embedded.patch("/v1/experiments/shop", json={"add_arm": "new"}).status_code == 200
    made = [decide(embedded, decision=f"b{n}")["arm"] for n in range(9)]
    assert "new" in made
    assert [row[1] for page in begun for row in page] == made


@pytest.mark.parametrize("what", ["export.csv", "export.parquet"])
def test_an_answer_that_breaks_off_is_logged_as_what_it_is(
    embedded: TestClient, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "PIECE", 100)
    create(embedded)
    decide(embedded)
    service = served(embedded)
    asked: list[str | None] = []

    def admits(key: str | None) -> bool:  # its key is revoked after the first piece
        asked.append(key)
        return len(asked) < (2 if what == "export.csv" else 5)

    monkeypatch.setattr(service, "admits", admits)
    with capture_logs() as logged:
        embedded.get(f"/v1/experiments/shop/{what}")
    (line,) = logged
    assert (line["event"], line["log_level"]) == ("broken off", "warning")
    assert "revoked" in line["reason"]


def test_plans_and_exports_keep_nobody_waiting(embedded: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read key can ask for more of them than there are threads for all."""
    create(embedded, policy="adap-ucb")
    decide(embedded)
    service, end = served(embedded), threading.Event()
    monkeypatch.setattr(service.planner, "ask", lambda _: end.wait(300) and {})
    monkeypatch.setattr(
        "dpbandits.service.reading.as_parquet", lambda pages: end.wait(300) and export.as_parquet(pages)
    )
    plan = "/v1/plan?policy=ucb1&arms=2&best=0.5&gap=0.1&traffic=100&days=1"
    with ThreadPoolExecutor(50) as threads:
        waits = [threads.submit(embedded.get, plan) for _ in range(40)]
        waits += [threads.submit(embedded.get, "/v1/experiments/shop/export.parquet") for _ in range(5)]
        time.sleep(0.5)
        try:
            for path in ("/readyz", "/v1/experiments/shop/summary", "/v1/experiments/shop/export.csv"):
                assert threads.submit(embedded.get, path).result(30).status_code == 200
        finally:
            end.set()
        assert {one.result(60).status_code for one in waits} == {200}
