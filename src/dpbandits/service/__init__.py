"""The service: run a private bandit for real. ``dpbandits serve``, or ``app`` in an ASGI server of your own."""

from dpbandits.service.app import app

__all__ = ["app"]
