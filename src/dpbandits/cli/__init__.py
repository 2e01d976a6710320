"""The command line: one command is one library call. Commands import what they need when they run: ``--help`` is quick.

Every module of this package adds its commands to the group when it is imported, and all of them are.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys

import click

from dpbandits.cli.shared import app
from dpbandits.errors import InputError, MissingExtraError

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def main() -> None:
    """The ``dpbandits`` command."""
    try:
        app.main(standalone_mode=False)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except click.ClickException as error:
        _fail(error.format_message().replace("\n", " "))
    except (InputError, MissingExtraError) as error:
        _fail(str(error))
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        _fail(f"{error.filename or 'file'}: {error.strerror or error}")
    except (KeyboardInterrupt, click.Abort):
        click.echo("dpbandits: interrupted", err=True)
        sys.stdout.flush()
        os._exit(130)  # compiled code that is still running cannot be stopped otherwise


def _fail(message: str) -> None:
    click.echo(f"dpbandits: {message}", err=True)
    sys.exit(2)
