"""``python -m dpbandits`` is the ``dpbandits`` command."""

from dpbandits.cli import main

if __name__ == "__main__":
    main()
