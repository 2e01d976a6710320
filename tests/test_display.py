"""What values show in a notebook is HTML in which every text is escaped."""

from __future__ import annotations

import dataclasses
import functools
from html.parser import HTMLParser
from typing import Any

import pytest

import dpbandits as dp
from dpbandits.display import card

NAME = '<b>&"'
TAGS = {"div", "strong", "br", "small", "svg", "polyline", "rect", "table", "tr", "th", "td"}


class Reader(HTMLParser):
    """Keeps the tags and the text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@functools.cache
def values() -> dict[str, Any]:
    trace = dp.simulate("ldp-ucb-b", arms={NAME: 0.9, "other": 0.2}, epsilon=1, horizon=200, runs=2)
    policy = dataclasses.replace(dp.policies.ldp_ucb_b(arms=2, epsilon=1.0), name=NAME)
    guarantee = dataclasses.replace(policy.guarantee, conditions=NAME)
    verdict = dataclasses.replace(dp.audit.verify(dp.policies.ldp_ucb_b(arms=2, epsilon=1.0)), subject=NAME)
    return {
        "trace": trace,
        "traces": dp.compare([trace]),
        "session": dp.Session("ucb1", arms=[NAME, "other"]),
        "policy": policy,
        "guarantee": guarantee,
        "verdict": verdict,
    }


@pytest.mark.parametrize("name", ["trace", "traces", "session", "policy", "guarantee", "verdict"])
def test_names_are_text_in_a_notebook(name: str) -> None:
    page = Reader()
    page.feed(values()[name]._repr_html_())
    assert NAME in page.text
    assert page.tags <= TAGS


def test_what_a_picture_shows_is_text() -> None:
    page = Reader()
    page.feed(card(["heading"], "<svg></svg>", NAME))
    assert (page.text, page.tags) == (f"heading {NAME}", {"div", "strong", "br", "svg", "small"})
