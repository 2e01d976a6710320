"""The command line. Each command is one library call, and imports what it needs when it runs: ``--help`` stays quick.

Importing a module of this package adds its commands to the group. All modules are imported here.
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
        status = app.main(standalone_mode=False)  # the status of click's Exit; commands return None
        if status:
            sys.exit(status)
    except click.ClickException as error:
        _fail(error.format_message().replace("\n", " "))
    except (InputError, MissingExtraError) as error:
        _fail(str(error))
    except BrokenPipeError:  # the program that reads the output, such as head, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        _fail(f"{error.filename or 'file'}: {error.strerror or error}")
    except (KeyboardInterrupt, click.Abort):
        click.echo("dpbandits: interrupted", err=True)
        sys.stdout.flush()
        os._exit(130)  # nothing else stops compiled code that is still running


def _fail(message: str) -> None:
    click.echo(f"dpbandits: {message}", err=True)
    sys.exit(2)
