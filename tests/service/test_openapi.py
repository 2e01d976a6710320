"""The service keeps what its OpenAPI document says, whatever is sent (schemathesis)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from servers import Server, Zygote

#: What fits the document can still be refused (a policy that does not exist), and the name is put right here.
NOT_CHECKED = [schemathesis.checks.positive_data_acceptance, schemathesis.checks.negative_data_rejection]
EXAMPLES = 10  # for each operation, of requests that fit the document and of requests that do not
ENDLESS = "/v1/experiments/{name}/events"


def test_every_answer_is_described(tmp_path: Path) -> None:
    """Requests that fit the document and requests that do not: every answer is one that it describes, and no 500."""
    zygote = Zygote()
    server = Server(zygote, tmp_path, f"sqlite:///{tmp_path}/test.db")
    server.start()
    try:
        for name, policy in (("shop", "ldp-ucb-b"), ("central", "adap-ucb")):
            asked = {"name": name, "arms": ["a", "b"], "policy": policy, "epsilon": "1"}
            assert server.call("POST", "/v1/experiments", asked)[0] == 201
        schema = schemathesis.openapi.from_url(f"http://127.0.0.1:{server.port}/openapi.json")
        operations = [found.ok() for found in schema.get_all_operations()]  # type: ignore[union-attr]
        assert len(operations) >= 18
        for operation in operations:
            if operation.path != ENDLESS:
                attack(operation)
    finally:
        server.stop()
        zygote.stop()


def attack(operation: Any) -> None:
    for mode in schemathesis.GenerationMode:
        if mode is schemathesis.GenerationMode.NEGATIVE and not (operation.body or operation.query):
            continue

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        def sent(case: Any) -> None:
            if "name" in (case.path_parameters or {}) and ":" not in case.path:
                case.path_parameters["name"] = "shop"
            case.call_and_validate(excluded_checks=NOT_CHECKED)

        sent()
