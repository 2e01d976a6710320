"""The page on privacy is true."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from dpbandits import Session, policies
from dpbandits.errors import InputError

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "privacy.md"


@pytest.mark.parametrize("page", ["privacy.md", "audits.md", "users.md", "../howto/unbounded-rewards.md"])
def test_the_examples_of_the_page_run(page: str) -> None:
    options = doctest.IGNORE_EXCEPTION_DETAIL | doctest.ELLIPSIS
    failed, tried = doctest.testfile(str(PAGE.parent / page), module_relative=False, optionflags=options)
    assert tried >= 4
    assert failed == 0


def test_its_links_lead_somewhere() -> None:
    assert "(exact-noise.md)" in PAGE.read_text()
    assert (PAGE.parent / "exact-noise.md").exists()


def test_errors_quote_no_reward() -> None:
    session = Session(policies.ldp_ucb_b(arms=2, epsilon=1.0))
    decision = session.ask()
    with pytest.raises(InputError) as error:
        session.tell(decision, 0.123456)
    assert "123" not in str(error.value)
