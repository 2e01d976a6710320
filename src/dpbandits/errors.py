"""The few errors that we raise ourselves."""

from __future__ import annotations

__all__ = ["ChoiceError", "InputError", "MissingExtraError", "check_choice", "check_turns", "require"]


class ChoiceError(ValueError):
    """An agent answered with an arm that does not exist, or with a stint of no rounds."""


def check_choice(arm: int, stint: int, arms: int) -> None:
    """Refuse what an agent answered if there is no such arm or no such stint. Loops call it, and compile it.

    >>> check_choice(1, 20, 2)
    """
    if not (0 <= arm < arms and stint >= 1):
        raise ChoiceError("act must return an arm that exists and a stint of at least 1")


def check_turns(turns: int) -> None:
    """Refuse what an agent answered if there are no turns. Loops call it, and compile it.

    >>> check_turns(2)
    """
    if turns < 1:
        raise ChoiceError("turns must return at least 1")


class InputError(ValueError):
    """A value that cannot be used. The message is one line: the parameter, the rule, and what was given.

    >>> error = InputError("epsilon", "must be positive, got -1")
    >>> error.parameter, str(error)
    ('epsilon', 'epsilon must be positive, got -1')
    >>> str(InputError("arms", ": line 3 of 'log.csv': the arm has no name"))
    "arms: line 3 of 'log.csv': the arm has no name"
    """

    def __init__(self, parameter: str, text: str) -> None:
        super().__init__(parameter, text)
        self.parameter = parameter
        self.text = text

    def __str__(self) -> str:
        return f"{self.parameter}{'' if self.text.startswith((':', ',')) else ' '}{self.text}"


class MissingExtraError(ImportError):
    """An optional dependency is not installed. The message holds the command that installs it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: {_install(extra)}")


def require(extra: str, *modules: str) -> None:
    """Refuse, before any work, to do what needs a package that is not installed."""
    from importlib.util import find_spec

    for module in modules:
        if find_spec(module) is None:
            raise MissingExtraError(module, extra)


def _install(extra: str) -> str:
    """The command that adds an extra to this installation: from the folder or file that it was installed from."""
    import json
    from contextlib import suppress
    from importlib import metadata
    from urllib.parse import unquote, urlsplit

    with suppress(metadata.PackageNotFoundError, ValueError):
        origin = json.loads(metadata.distribution("dpbandits").read_text("direct_url.json") or "{}")
        address = origin.get("url", "")
        if address.startswith("file:") and "dir_info" in origin:
            editable = "--editable " if origin["dir_info"].get("editable") else ""
            return f"pip install {editable}'{unquote(urlsplit(address).path)}[{extra}]'"
        if address:
            return f"pip install 'dpbandits[{extra}] @ {address}'"
    return f"pip install 'dpbandits[{extra}]'"
