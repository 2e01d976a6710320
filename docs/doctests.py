"""Examples in docstrings are shown as code: each block that begins with ``>>>`` becomes a fenced block."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?! *$).*)*", flags=re.MULTILINE)
#: A line such as "Reference: ..." begins a paragraph of its own.
FACT = re.compile(r"^(Reference|Guarantee|Differs): ", flags=re.MULTILINE)


class Doctests(Extension):
    """Fences the examples of every docstring that is read."""

    def on_instance(self, *, obj: Object, **about: Any) -> None:
        """Called by Griffe for each object."""
        if obj.docstring is not None:
            text = FACT.sub(r"\n**\1:** ", obj.docstring.value)
            obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
