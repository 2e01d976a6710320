"""Chromium for tests.

A module opens it and closes it again: as long as it is open, no other code of the process can run an event loop.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, expect, sync_playwright


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium."""
    found = shutil.which("chromium")
    assert found is not None, "chromium is not installed: run make browser"
    expect.set_options(timeout=30_000)  # a busy machine is no failure
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()
