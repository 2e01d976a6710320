"""Every policy of the package obeys every law; nothing is listed by hand."""

import pytest

from dpbandits.testing import LAWS, Case, subjects


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("case", subjects(), ids=lambda case: f"{case.name} on {case.arms}")
def test_law(case: Case, law: str) -> None:
    LAWS[law](case)
