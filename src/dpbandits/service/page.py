"""The page and the demo shop, as files that were built into the package: nothing is fetched from elsewhere."""

from __future__ import annotations

import gzip
import mimetypes
from pathlib import Path
from typing import NamedTuple

__all__ = ["BUILT", "File", "Files"]

#: Where ``make web`` and the build of the wheel put the page.
BUILT = Path(__file__).with_name("web")

POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    b"trusted-types 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
FOR_EVER = (b"cache-control", b"public, max-age=31536000, immutable")  # the names of assets hold their hash
ASK_AGAIN = (b"cache-control", b"no-cache")

PLAIN = """<!doctype html><html lang="en"><meta charset="utf-8"><title>dpbandits</title>
<meta name="viewport" content="width=device-width"><p>{}</p></html>
"""
NOT_BUILT = (
    "dpbandits serves its API here: <a href='/docs'>/docs</a> describes it. The page is not built into this copy. To "
    "build it, install Node 20.19 or newer with npm; then run <code>make web</code> in a checkout, or install it "
    "again with pip."
)
NO_DEMO = "The demo shop is closed. To open it: <code>dpbandits serve --demo</code>"


class File(NamedTuple):
    """One file, plain and compressed."""

    kind: bytes
    content: bytes
    small: bytes
    keep: bool  # whether browsers may keep it for ever
    code: int = 200

    @classmethod
    def of(cls, name: str, content: bytes, code: int = 200) -> File:
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        kind = "text/javascript" if name.endswith(".js") else kind
        text = kind.startswith("text/") or kind == "image/svg+xml"
        small = gzip.compress(content, 9, mtime=0)
        kept = name.startswith("assets/")
        return cls(f"{kind}; charset=utf-8".encode() if text else kind.encode(), content, small, kept, code)

    def headers(self, zipped: bool) -> list[tuple[bytes, bytes]]:
        """What the answer says about it."""
        length = len(self.small if zipped else self.content)
        return [
            (b"content-type", self.kind),
            (b"content-length", b"%d" % length),
            (b"vary", b"accept-encoding"),
            FOR_EVER if self.keep else ASK_AGAIN,
            *([(b"content-encoding", b"gzip")] if zipped else []),
            *HEADERS,
        ]


class Files:
    """The files by their path. Without a built page, one paragraph says how to build it.

    >>> Files(Path("nowhere"), demo=False).find("/").code
    200
    """

    def __init__(self, folder: Path, *, demo: bool) -> None:
        found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
        self._files = {f"/{name}": File.of(name, path.read_bytes()) for name, path in found.items()}
        missing = File.of("index.html", PLAIN.format(NOT_BUILT).encode())
        self._files["/"] = self._files.pop("/index.html", missing)
        shop = self._files.pop("/demo.html", missing)
        self._files["/demo"] = shop if demo else File.of("demo.html", PLAIN.format(NO_DEMO).encode(), 404)

    def find(self, path: str) -> File | None:
        """The file at this path."""
        return self._files.get(path)
