"""What the tests of clients share: servers in processes of their own, and the built JavaScript package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from javascript import build
from servers import Server, Zygote


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.stop()


@pytest.fixture
def server(zygote: Zygote, tmp_path: Path) -> Iterator[Server]:
    made = Server(zygote, tmp_path, f"sqlite:///{tmp_path}/test.db")
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def built() -> Path:
    """The folder with the built modules."""
    return build()
