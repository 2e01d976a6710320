"""What the tests of the page share: one browser, and servers in processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import chromium
from looking import Visit
from playwright.sync_api import Browser
from servers import Server, Zygote, zygote

from dpbandits.service.page import BUILT

__all__ = ["zygote"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert (BUILT / "index.html").exists(), "the page is not built: run make web"
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def serving(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Start servers, which are stopped at the end of the module."""
    started: list[Server] = []

    def start(**settings: Any) -> Server:
        folder: Path = tmp_path_factory.mktemp("server")
        server = Server(zygote, folder, f"sqlite:///{folder}/test.db", **settings)
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open tabs. Every test fails on an error in the console and on a request to another server."""
    opened: list[Visit] = []

    def visiting(server: Server, **context: Any) -> Visit:
        one = Visit(browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context}), server)
        opened.append(one)
        return one

    yield visiting
    for one in opened:
        one.close()
