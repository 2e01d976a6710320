"""What the bench measures: every later policy beside the nearest older one."""

from dpbandits.bench import _with_relatives
from dpbandits.policies import lookup


def test_a_relative_is_another_policy_that_has_none() -> None:
    pairs = dict(_with_relatives())
    assert pairs["ldp-imed-b"] == "ldp-ucb-b"
    assert len(pairs) >= 10
    assert {*pairs.values()} <= {*lookup.names()} - {*pairs}
