"""The JavaScript client: it builds, passes its tests, is small, and packs what it should."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from javascript import PACKAGE, build, npm

MANIFEST: dict[str, Any] = json.loads((PACKAGE / "package.json").read_text())

needs_node = pytest.mark.skipif(not (shutil.which("node") and shutil.which("npm")), reason="Node is not installed")


@pytest.fixture(scope="module")
def built() -> Path:
    """The folder of the built modules."""
    return build()


@needs_node
def test_the_javascript_tests_pass(built: Path) -> None:
    report = npm("test")
    passed = re.search(r"^# pass (\d+)$", report, re.MULTILINE) or re.search(r"ℹ pass (\d+)", report)
    assert passed is not None, report
    assert int(passed[1]) >= 80


@needs_node
@pytest.mark.parametrize(("module", "most"), [("index.js", 2300), ("client.js", 6000), ("openfeature-web.js", 6000)])
def test_it_is_small(built: Path, module: str, most: int) -> None:
    """Curators and device under 2.3 kB; the whole client, with HTTP, under 6 kB, and with OpenFeature, too."""
    assert len(gzip.compress((built / module).read_bytes(), 9)) < most


@needs_node
@pytest.mark.parametrize("module", ["index.js", "client.js", "openfeature-web.js"])
def test_it_draws_from_webcrypto_only_and_imports_nothing(built: Path, module: str) -> None:
    code = (built / module).read_text()
    assert "crypto.getRandomValues" in code
    assert "Math.random" not in code
    assert not re.search(r"\b(import|require)\b", code)


@needs_node
def test_the_package_holds_code_types_and_source(built: Path) -> None:
    packed = json.loads(npm("pack", "--dry-run", "--json", "--ignore-scripts"))
    files = {file["path"] for file in packed[0]["files"]}
    modules = {path.stem for path in (PACKAGE / "src").glob("*.ts")}
    entries = {Path(entry["default"]).stem for entry in MANIFEST["exports"].values()}
    built_files = {f"dist/{name}.d.ts" for name in modules} | {f"dist/{name}.js" for name in entries}
    assert files == {"README.md", "package.json", *built_files, *(f"src/{name}.ts" for name in modules)}


def test_the_manifest_is_that_of_a_pure_module() -> None:
    assert MANIFEST["type"] == "module"
    assert MANIFEST["sideEffects"] is False
    assert "dependencies" not in MANIFEST
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in MANIFEST["devDependencies"].values())


def test_both_packages_have_one_version() -> None:
    source = (PACKAGE.parents[1] / "src" / "dpbandits" / "__init__.py").read_text()
    assert f'__version__ = "{MANIFEST["version"]}"' in source
