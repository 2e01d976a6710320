"""The command line, called in the tests' own process."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from dpbandits.cli import main

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def dpbandits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """``dpbandits(*words)``: exit status, standard output, standard error."""

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dpbandits", *words])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, *capsys.readouterr()

    return call
