"""The options of a policy as a value that cannot change: what is recorded of them is what the policy was made with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np

from dpbandits.errors import InputError

__all__ = ["NO_OPTIONS", "Options"]


class Options(Mapping[str, Any]):
    """Options by name. They are read as JSON has them, lists as tuples, and cannot be changed.

    >>> options = Options({"alpha": np.float64(2.0), "marks": [1, 2]})
    >>> options, options == {"alpha": 2.0, "marks": (1, 2)}, options.to_json()
    ({'alpha': 2.0, 'marks': (1, 2)}, True, {'alpha': 2.0, 'marks': [1, 2]})
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = {name: _frozen(str(name), value) for name, value in values.items()}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        return repr(self._values)

    def __reduce__(self) -> tuple[Any, ...]:
        return Options, (self._values,)

    def to_json(self) -> dict[str, Any]:
        """JSON-ready; ``Options`` reads it back."""
        return {name: _written(value) for name, value in self._values.items()}


#: The policy's own defaults.
NO_OPTIONS = Options({})


def _frozen(name: str, value: Any) -> Any:
    """A value that JSON has, and that cannot be changed; numbers and arrays of NumPy become Python's."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, list | tuple):
        return tuple(_frozen(name, one) for one in value)
    if isinstance(value, Mapping):
        return Options(value)
    raise InputError(name, f"must be a number, a text, true, false, or a list of these, got {value!r:.80}")


def _written(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_written(one) for one in value]
    return value.to_json() if isinstance(value, Options) else value
