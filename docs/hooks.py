"""What MkDocs asks while it builds the site: lists of commands, policies and problems are written from the package."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

#: The section of the menu for the pages of each folder.
SECTIONS = {"concepts": "Concepts", "howto": "How to", "papers": "Papers", "api": "Reference", "": "Concepts"}


def on_config(config: Any) -> Any:
    """Put every page that mkdocs.yml does not name at the end of its folder's section."""
    docs = Path(config.docs_dir)
    sections = {name: pages for entry in config.nav for name, pages in entry.items() if isinstance(pages, list)}
    named = str(config.nav)
    for page in sorted(docs.rglob("*.md")):
        path = page.relative_to(docs).as_posix()
        if path not in named:
            sections[SECTIONS["/".join(path.split("/")[:-1])]].append(path)
    return config


def on_page_markdown(markdown: str, **about: Any) -> str:
    """The page, with what the package says in place of each marker."""
    for marker, write in WRITERS.items():
        if marker in markdown:
            markdown = markdown.replace(marker, "\n".join(write()))
    return markdown


def problem_table() -> Iterator[str]:
    """The problems of the papers, by name."""
    from dpbandits.environments.problems import PROBLEMS

    yield "| name | arms |\n|---|---|"
    yield from (f"| `@{name}` | `{arms}` |" for name, arms in PROBLEMS.items())


def policy_pages() -> Iterator[str]:
    """The reference of every policy."""
    from dpbandits.policies import lookup

    yield from (f"::: {lookup.find(name).__module__}.{lookup.find(name).__name__}" for name in lookup.names())


def policy_table() -> Iterator[str]:
    """What a user asks first of every policy."""
    from dpbandits.policies import lookup

    cautions = []
    yield "| policy | trust | promise | rewards | | from |\n|---|---|---|---|---|---|"
    for row in lookup.overview():
        name, traits = row["name"], lookup.traits(row["name"])
        said = {"needs the horizon": lookup.needs_horizon(name), "stops": traits.stops, "(!)": traits.caution}
        rewards = "any size" if traits.any_reward else "in [0, 1]"
        link = f"[`{name}`](#{lookup.find(name).__module__}.{lookup.find(name).__name__})"
        special = "; ".join(words for words, so in said.items() if so)
        yield f"| {link} | {row['trust']} | {row['guarantee']} | {rewards} | {special} | {row['paper']} |"
        cautions += [f"(!) `{name}`: {traits.caution}."] if traits.caution else []
    yield from ("", "\n\n".join(cautions))


def newer_policies() -> Iterator[str]:
    """The policies that the page of the benchmark does not have yet; nothing where it has all."""
    from dpbandits.policies import lookup

    page = (Path(__file__).parent / "benchmark.md").read_text(encoding="utf-8")
    missing = [f"`{name}`" for name in lookup.names() if f"| `{name}` |" not in page]
    if missing:
        yield f"Newer than these runs, and not in them: {', '.join(missing)}. `dpbandits benchmark` plays them."


def command_pages() -> Iterator[str]:
    """A section for each command: what it does, how it is called, its options."""
    from dpbandits.cli import commands

    yield from _section(commands(), "dpbandits", None)


def _section(command: click.Command, path: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(command, info_name=path.split()[-1], parent=parent)
    if parent is not None:
        yield f"\n## {path}\n"
        yield _help(command)
        yield f"\n```text\n{path} {' '.join(command.collect_usage_pieces(context))}\n```\n"
        rows = [p.get_help_record(context) for p in command.get_params(context)]
        shown = [row for row in rows if row is not None]
        yield "| option | |\n|---|---|"
        yield from (f"| <code>{_cell(name)}</code> | {_cell(text)} |" for name, text in shown)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from _section(found, f"{path} {name}", context)


def _help(command: click.Command) -> str:
    """The help as Markdown; a paragraph after \\b keeps its lines."""
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(
        "\n".join(f"    {line}" for line in text.split("\n")[1:]) if text.startswith("\b") else text
        for text in paragraphs
    )


def _cell(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;")


def changelog() -> Iterator[str]:
    """The changelog, whose links start at the folder of the project."""
    text = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    yield text.replace("](docs/", "](")


WRITERS = {
    "<!-- changelog: CHANGELOG.md -->": changelog,
    "<!-- commands: written from the parser -->": command_pages,
    "<!-- policies that are newer than this page: written from the package -->": newer_policies,
    "<!-- policies: written from the package -->": policy_pages,
    "<!-- policies in a table: written from the package -->": policy_table,
    "<!-- problems: written from the package -->": problem_table,
}
