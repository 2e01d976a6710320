"""The demo shop's experiment: three banners, and visitors whose clicks never leave their device."""

from __future__ import annotations

from dpbandits.service.experiment import Settings

__all__ = ["NAME", "SETTINGS"]

NAME = "demo-shop"

#: Responses may come for an hour; nobody sends more than 50 of them.
SETTINGS = Settings.model_validate(
    {
        "name": NAME,
        "arms": ["Free shipping", "Summer sale", "New arrivals"],
        "policy": "ldp-ucb-b",
        "epsilon": "2",
        "response_window": 3600.0,
        "max_responses_per_user": 50,
    }
)
