"""The few errors that we raise ourselves."""

from __future__ import annotations

__all__ = ["ChoiceError", "InputError", "MissingExtraError"]


class ChoiceError(ValueError):
    """An agent answered with an arm that does not exist, or with a stint of no rounds."""


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
        super().__init__(f"{package} is not installed: pip install 'dpbandits[{extra}]'")
