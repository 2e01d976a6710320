"""The command line. Each command is one library call, and imports what it needs when it runs: ``--help`` stays quick.

Exit status: 0 done; 1 the answer is no; 2 bad input, or a fault in a user's own code; 70 an error of ours; 130 Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    import click

DONE, NO, BAD_INPUT, OURS, INTERRUPTED = 0, 1, 2, 70, 130

#: Where errors are reported; pyproject.toml says the same.
ISSUES = "https://github.com/dpbandits/dpbandits/issues"

#: Set to anything, it shows the whole traceback of an error of ours.
DEBUG = "DPBANDITS_DEBUG"
COMPLETION = "_DPBANDITS_COMPLETE"

_started = time.perf_counter()


def elapsed() -> float:
    """Seconds since the command began."""
    return time.perf_counter() - _started


def commands() -> click.Group:
    """The group of all commands. Importing a module of this package adds its commands; all of them are imported."""
    import importlib
    import pkgutil

    from dpbandits.cli.shared import app

    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return app


def main() -> None:
    """The ``dpbandits`` command."""
    global _started
    _started = time.perf_counter()
    _open_closed_streams()
    pressed: list[int] = []
    before = _on_ctrl_c(pressed)
    try:
        status = _run()
    except BaseException as error:
        # An import that Ctrl-C breaks off may raise another error.
        status = INTERRUPTED if pressed or isinstance(error, KeyboardInterrupt) else _fail(error)
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
    if status == INTERRUPTED:
        _complain("interrupted")
    status = _flush(status)
    if status == INTERRUPTED:
        os._exit(status)  # nothing else stops compiled code that is still running
    sys.exit(status)


def _run() -> int:
    import click

    app = commands()
    if COMPLETION in os.environ:  # asked by a shell
        return int(app.main(standalone_mode=False, prog_name="dpbandits", complete_var=COMPLETION) or DONE)
    try:
        with app.make_context("dpbandits", sys.argv[1:]) as context:
            app.invoke(context)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
    return DONE


def _fail(error: BaseException) -> int:
    """Say in one line what is wrong; the exit status."""
    import click

    from dpbandits.errors import InputError, MissingExtraError

    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else BAD_INPUT if error.code else DONE
    if isinstance(error, BrokenPipeError):  # the program that reads the output, such as head, has ended
        return DONE
    if isinstance(error, click.ClickException):
        _complain(error.format_message())
    elif isinstance(error, InputError | MissingExtraError):
        _complain(str(error))
    elif isinstance(error, OSError):
        _complain(f"{error.filename or 'output'}: {error.strerror or error}")
    elif isinstance(error, MemoryError):
        _complain("memory: there is not enough for this: ask for fewer arms, runs, rounds or checkpoints")
    elif (place := _own_code(error)) is not None:
        _complain(f"your own code failed: {type(error).__name__}: {error} ({place})")
    else:
        return _unexpected(error)
    return BAD_INPUT


def _unexpected(error: BaseException) -> int:
    """An error that no user should see: where it happened, and where to report it."""
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else "an unknown place"
    _complain(
        f"unexpected error, {type(error).__name__} in {place}: please report it with this command line at "
        f"{ISSUES} ({DEBUG}=1 shows the whole error)"
    )
    return OURS


def _own_code(error: BaseException) -> str | None:
    """Where a user's own code raised this error: file and line; None if it was not raised there."""
    import sysconfig

    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = sysconfig.get_paths()
    installed = tuple({ours, paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"]})
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = os.path.abspath(frame.filename)
        if path.startswith(ours):
            return None
        if os.path.isfile(path) and not path.startswith(installed) and path != os.path.abspath(sys.argv[0]):
            return f"{frame.filename}, line {frame.lineno}"
    return None


def _complain(message: str) -> None:
    """One line on standard error. Control characters, as in a binary file, are shown as escapes."""
    line = " ".join(message.split())
    shown = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in line)
    with suppress(OSError, ValueError):
        print(f"dpbandits: {shown}", file=sys.stderr, flush=True)


def _on_ctrl_c(pressed: list[int]) -> Any:
    """Note when Ctrl-C is pressed; the handler to restore, or None where nothing was changed."""

    def handler(number: int, frame: object) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, as in the background, or handled by someone else
        return None
    try:
        return signal.signal(signal.SIGINT, handler)
    except ValueError:  # not the main thread, which is the only one that gets signals
        return None


def _open_closed_streams() -> None:
    """Where standard output or error is closed, what is written to it goes nowhere.

    A letter that the encoding of a stream lacks, such as ε in ASCII, is written as an escape.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # open until the process ends
        elif getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            with suppress(ValueError):  # it is closed
                stream.reconfigure(errors="backslashreplace")


def _flush(status: int) -> int:
    """Write what is still buffered. The answer keeps its status if nobody reads it, and not if it cannot be written."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            discard(stream)
        except OSError as error:
            discard(stream)
            _complain(f"standard output: {error.strerror or error}")
            status = BAD_INPUT
    return status


def discard(stream: TextIO) -> None:
    """Send what is still written to a stream nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
