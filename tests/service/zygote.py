"""Starts servers quickly: everything is imported once, and each server is a fork. Commands come on standard input.

Settings, as JSON, start a server with them, and are answered with its process id. The servers are ordinary ones: they
are killed by their process id, and write their log where they are told. A number waits for the end of that process.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from dpbandits.service import serving
from dpbandits.service.settings import ServerSettings


def run(given: dict[str, Any]) -> None:
    log = os.open(str(given.pop("log")), os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        serving.serve(ServerSettings.read(**given))
    except BaseException as error:
        os.write(2, f"ended by {error!r}\n".encode())
    os._exit(0)


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        if isinstance(command, int):
            process, _ = os.waitpid(command, 0)
        else:
            process = os.fork()
            if process == 0:
                run(command)
        print(process, flush=True)


if __name__ == "__main__":
    main()
