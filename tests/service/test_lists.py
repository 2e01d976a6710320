"""A list of answers: each becomes what it would have become alone, and the same is stored."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from calls import create, decide, served
from starlette.testclient import TestClient

from dpbandits.service import hot, rows

Open = Callable[..., TestClient]

#: What is stored, without times, and of digests, whose keys differ, only where there is one.
STORED = (
    "select experiment, decision, item, arm, stint, kind, level, outcome, response, digest is null, sealed, folded "
    "from answers order by 1, 2, 3",
    "select * from people order by 1, 2, 3",
    "select * from held_out order by 1, 2",
    "select experiment, arm, sum(decisions), sum(silent), sum(used), sum(apart), sum(late), sum(duplicate), "
    "sum(refused) from traffic group by 1, 2 order by 1, 2",
    "select experiment, version, draws from states order by 1",
)


def two_alike(serve: Open, folder: Path) -> list[TestClient]:
    """Two servers with the same secrets, experiments and decisions.

    The secrets say who is held out: of the 23 users whose answers are taken none or all, with probability below 3e-7.
    """
    client = serve(f"sqlite:///{folder}/first.db")
    create(client, "capped", max_responses_per_user=2, holdout=0.5, baseline="blue")
    create(client, "leased", policy="ldp-ucb-l")
    create(client, "levels", policy="heldp-ucb-b", levels=["1/2", "2"], options={"epsilon_min": "auto"})
    create(client, "hasty", response_window=0.001)
    create(client, "open", policy="ucb1")
    client.__exit__(None, None, None)
    shutil.copy(folder / "first.db", folder / "second.db")
    return [
        serve(f"sqlite:///{folder}/{name}.db", tally=f"sqlite:///{folder}/{name}.tally") for name in ("first", "second")
    ]


def tokens_of(client: TestClient) -> list[str]:
    made = [decide(client, "capped", decision=f"order-{n}", user=f"user {n % 25}") for n in range(100)]
    for name in ("leased", "open"):
        made += decide(client, name, decision="lease", count=400)["decisions"]
    for user in range(40):
        level = ("1/2", "2")[user % 2]
        made += decide(client, "levels", decision=f"{user}", user=f"user {user}", level=level, count=3)["decisions"]
    made += decide(client, "hasty", decision="too-late", count=50)["decisions"]
    return [one["token"] for one in made]


@pytest.mark.parametrize(("field", "many"), [("response", rows.MANY), ("response", 1), ("reward", rows.MANY)])
def test_a_list_is_taken_as_if_each_of_it_came_alone(
    serve: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, field: str, many: int
) -> None:
    """With answers that come twice, contradict, are late, beyond the cap, of users who are held out, or wrong.

    In any order, and lease by lease; written with a statement for each lease, or for those with many answers.
    """
    monkeypatch.setattr(rows, "MANY", many)
    listed, alone = two_alike(serve, tmp_path)
    ours, theirs = tokens_of(listed), tokens_of(alone)
    chance = random.Random(7)
    picked = [(chance.randrange(len(ours)), chance.choice([0, 0, 1, 1, 1, None])) for _ in range(1100)]
    picked[501:] = sorted(one for one in picked[501:] if one[0] % 97 and one[1] is not None)  # tokens that are all ours

    def body(tokens: list[str], place: int, value: int | None) -> dict[str, Any]:
        token = tokens[place] if place % 97 else f"{tokens[place][:-4]}AAAA"
        return {"token": token, field: value} if place % 89 else {"token": token}

    said = []
    for start, end in ((0, 500), (500, 501), (501, len(picked))):
        sent = [body(ours, *one) for one in picked[start:end]]
        said += listed.post(f"/v1/{field}s", json=sent).json()
    assert said == [alone.post(f"/v1/{field}s", json=body(theirs, *one)).json() for one in picked]
    expected = {"accepted", "duplicate", "conflict", "unknown", "invalid"} | (
        {"late"} if field == "response" else set()
    )
    assert {one["status"] for one in said} == expected
    stored = []
    for client in (listed, alone):
        service = served(client)
        with service.store.reading() as connection:
            tables = [[tuple(row) for row in connection.execute(sa.text(text))] for text in STORED]
        frozen = [run.state.freeze() for _, run in sorted(service.runs.items())]
        stored.append((tables, [(state["desk"], state["agent"], state["curator"]) for state in frozen]))
    assert stored[0] == stored[1]
    outcomes = {row[7] for row in stored[0][0][0]}
    assert outcomes == ({"used", "apart", "late", "refused"} if field == "response" else {"used"})


def test_a_list_that_is_too_long_is_refused_before_its_items_are_looked_at(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To say what is wrong with each of half a million items took most of a second, in which nobody was answered."""
    monkeypatch.setattr(hot, "_alone", None)
    answer = client.post("/v1/responses", content=b"[%s1]" % (b"1," * hot.MAX_ITEMS))
    assert answer.status_code == 413
    assert "1001" in answer.text


def test_bytes_that_are_no_text_spoil_no_other_item_wherever_they_stand(client: TestClient) -> None:
    create(client)
    good = [b'{"token": "%s", "response": 1}' % decide(client)["token"].encode() for _ in range(2)]
    bad, wrong = b'{"token": "\xff", "response": 1}', b'{"token": 7}'
    for one, items in zip(good, ([bad, wrong], [wrong, bad]), strict=True):
        answer = client.post("/v1/responses", content=b"[%s]" % b",".join([*items, one]))
        assert [said["status"] for said in answer.json()] == ["invalid", "invalid", "accepted"]
    assert client.post("/v1/responses", content=bad).status_code == 422


@pytest.mark.parametrize("half", [r"\ud800", r"\udfff", r"\ud800\u0041"])
def test_half_a_surrogate_spoils_no_other_item(client: TestClient, half: str) -> None:
    """As ``json.dumps`` writes a text that no UTF-8 can hold. With bytes that are no text it is the same."""
    create(client)
    good = [b'{"token": "%s", "response": 1}' % decide(client)["token"].encode() for _ in range(2)]
    bad, bytes_of_no_text = b'{"token": "%s", "response": 1}' % half.encode(), b'{"token": "\xff", "response": 1}'
    for one, items in zip(good, ([bad], [bytes_of_no_text, bad]), strict=True):
        answer = client.post("/v1/responses", content=b"[%s]" % b",".join([*items, one]))
        assert [said["status"] for said in answer.json()] == ["invalid"] * len(items) + ["accepted"]
    many = b"[%s1]" % (b'"%s",' % half.encode() * 1000)
    assert client.post("/v1/responses", content=many).status_code == 413


def test_beside_half_a_surrogate_an_item_is_taken_as_it_would_be_alone(client: TestClient) -> None:
    """Fields that are given twice, and a number that is too long for Python."""
    create(client)
    token = decide(client)["token"].encode()
    odd = [
        b'{"token": 5, "token": "%s", "response": 1}' % token,
        b'{"token": "%s", "response": %s}' % (token, b"9" * 5000),
        b' {"token" : "%s" , "response" : 1}\t' % token,
    ]
    alone = [client.post("/v1/responses", content=b"[%s]" % one).json()[0]["status"] for one in odd[:2]]
    assert alone == ["invalid"] * 2
    said = client.post("/v1/responses", content=b'[{"token": "\\ud800", "response": 1},%s]' % b",".join(odd)).json()
    assert [one["status"] for one in said] == ["invalid", *alone, "accepted"]
    half = b'"\\ud800"'
    wrong = [b"[1,]", b"[%s,]", b"[%s", b"[%s] 1", b"[%s 1]", b"[%s[1]", b"\x0b[%s]", b"[%s]\xc2\xa0", b"[,%s]"]
    for one in wrong:
        assert client.post("/v1/responses", content=one.replace(b"%s", half)).status_code == 400, one


@pytest.mark.parametrize("constant", [b"NaN", b"Infinity", b"-Infinity"])
@pytest.mark.parametrize("field", [b"response", b"reward"])
def test_a_list_with_what_is_no_number_of_json_is_no_json(client: TestClient, field: bytes, constant: bytes) -> None:
    """Python's own reader takes it. Nothing of the list is stored."""
    create(client, policy="ldp-ucb-b" if field == b"response" else "ucb1")
    good = b'{"token": "%s", "%s": 1}' % (decide(client)["token"].encode(), field)
    half = b'{"token": "\\ud800", "%s": 1}' % field
    within = b'{"token": "x", "%s": %s}' % (field, constant)
    for items in ([constant, good], [good, constant], [within, good], [half, constant, good], [half, within, good]):
        answer = client.post(f"/v1/{field.decode()}s", content=b"[%s]" % b",".join(items))
        assert (answer.status_code, "must be JSON" in answer.json()["detail"]) == (400, True), items
    answer = client.post(f"/v1/{field.decode()}s", content=b"[%s,%s]" % (half, good))
    assert [one["status"] for one in answer.json()] == ["invalid", "accepted"]


def test_what_is_no_list_of_items_is_refused(client: TestClient) -> None:
    bad = b'{"token": "\xff", "response": 1}'
    assert client.post("/v1/responses", content=b"[" + bad).status_code == 400
    assert client.post("/v1/responses", content=b"nothing").status_code == 400
    assert client.post("/v1/responses", content=b"7").status_code == 422
