"""Settings of a server: flags, then ``DPBANDITS_*`` in the environment, then a TOML file, then the defaults."""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from dpbandits.checks import nearest
from dpbandits.errors import InputError
from dpbandits.service.origins import Origins

__all__ = ["ServerSettings", "mistyped", "rule_of"]

PREFIX = "DPBANDITS_"  # of settings in the environment

ADDRESSES = ("store", "tally")

#: Databases of SQLite that are no file.
IN_MEMORY = ("sqlite://", "sqlite:///", "sqlite:///:memory:")


def rule_of(text: str) -> str:
    """What Pydantic says of a value, as the other messages say it.

    >>> rule_of("Input should be a valid integer, unable to parse string as an integer")
    'must be a valid integer'
    """
    return text.partition(", unable to parse")[0].replace("Input should", "must", 1)


class ServerSettings(BaseSettings):
    """Everything that can be set.

    >>> ServerSettings.read(port=80).port
    80
    >>> ServerSettings.read(prot=80)
    Traceback (most recent call last):
    dpbandits.errors.InputError: prot is not a setting: did you mean port?
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid")

    store: str = Field("sqlite:///dpbandits.db", description="sqlite:///FILE, or postgresql://... for several workers.")
    synchronous: Literal["full", "extra", "normal", "off"] = Field("full", description="How SQLite writes to the disk.")
    keys: Path = Field(Path("dpbandits.keys"), description="The file with the server's secrets.")
    tally: str = Field("sqlite:///dpbandits.tally", description="Where draws are counted, outside the store.")
    host: str = "127.0.0.1"
    port: int = Field(8000, ge=0, le=65535)
    workers: int = Field(1, ge=1, le=64, description="Processes; more than 1 needs PostgreSQL.")
    log_format: Literal["json", "console"] = "console"
    access_log: bool = Field(False, description="Whether every request is logged, and not only those that fail.")
    telemetry: bool = Field(False, description="Whether requests are traced with OpenTelemetry.")
    max_body: int = Field(1_048_576, ge=1024, description="The largest request, in bytes.")
    rate_limit: float | None = Field(
        None,
        gt=0,
        description="Requests a second for each key; with a key of the role decide, or with none, for each address.",
    )
    allow_origins: list[str] = Field(
        default_factory=list,
        description="Origins whose pages may ask for decisions and send answers, such as https://shop.example.org.",
    )
    token_key_days: float = Field(30.0, gt=0, description="Days after which the key that signs tokens is renewed.")
    demo: bool = Field(False, description="Whether the demo shop is open, at /demo.")
    own_policies: list[str] = Field(default_factory=list, description="module:function names that may be used.")

    @classmethod
    def read(cls, config: str | Path | None = None, **flags: Any) -> ServerSettings:
        """The settings from flags, the environment and a file, or one line that says what is wrong."""
        given = _file(config)
        for name in (*given, *flags):
            if name not in cls.model_fields:
                raise InputError(name, f"is not a setting: {nearest(name, cls.model_fields)}")

        class Reading(cls):  # type: ignore[valid-type, misc]
            @classmethod
            def settings_customise_sources(
                cls, settings_cls: Any, init_settings: Any, env_settings: Any, *_: Any, **__: Any
            ) -> tuple[PydanticBaseSettingsSource, ...]:
                return init_settings, env_settings, InitSettingsSource(settings_cls, init_kwargs=given)

        try:
            read = cls.model_construct(**Reading(**flags).model_dump())
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0]) if first["loc"] else "settings"
            # An address is not repeated: it may hold a password.
            got = f"a {type(first['input']).__name__}" if name in ADDRESSES else f"{first['input']!r:.80}"
            text = rule_of(first["msg"])
            raise InputError(name, f"{'' if text.startswith('must ') else ': '}{text}, got {got}") from None
        except SettingsError as error:
            raise _no_list(error) from None
        Origins(read.allow_origins)
        for name in ("store", "keys", "tally", "host"):
            if "\0" in str(getattr(read, name)):
                raise InputError(name, "must be a text without null characters, got one with some")
        if not read.keys.name:
            raise InputError("keys", f"must be the name of a file, got '{read.keys}'")
        if read.store in IN_MEMORY:
            raise InputError(
                "store", f"must be a file: what is in memory is gone when the server stops, got {read.store}"
            )
        return read

    @property
    def recent(self) -> Path:
        """The file with the keys of digests, beside the server's secrets."""
        return self.keys.with_name(f"{self.keys.name}.recent")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def _no_list(error: SettingsError) -> InputError:
    """Which variable of the environment must be a list, and is none. Only a list is decoded, and can fail to be."""
    named = re.search(r'field "(\w+)"', str(error))
    variable = f"{PREFIX}{named[1].upper()}" if named else "settings"
    return InputError(variable, f"""must be a list such as '["one", "two"]', got {os.environ.get(variable)!r:.80}""")


def mistyped() -> list[str]:
    """Variables of the environment that are no settings, but are named almost as one. Others may have their own use."""
    settings = [name.upper() for name in ServerSettings.model_fields]
    given = sorted(name.removeprefix(PREFIX) for name in os.environ if name.startswith(PREFIX))
    near = {name: difflib.get_close_matches(name, settings, n=1) for name in given if name not in settings}
    return [
        f"{PREFIX}{name} in the environment is no setting, and is ignored: did you mean {PREFIX}{meant[0]}?"
        for name, meant in near.items()
        if meant
    ]


def _file(config: str | Path | None) -> dict[str, Any]:
    if config is None:
        return {}
    try:
        return tomllib.loads(Path(config).read_text())
    except OSError as error:
        raise InputError("config", f"cannot be read: {config}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError("config", f"must be a TOML file: {config}: {error}") from None
    except RecursionError:
        raise InputError("config", f"must be a TOML file: {config}: it is nested too deeply") from None
