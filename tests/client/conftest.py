"""What the tests of clients share: servers in processes of their own, and the built JavaScript package."""

from __future__ import annotations

from pathlib import Path

import pytest
from javascript import build
from servers import server, zygote

__all__ = ["built", "server", "zygote"]


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder with the built modules."""
    return build()
