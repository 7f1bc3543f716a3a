"""Options of a source over Redis Streams."""

from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from slackwater.core.errors import UsageError
from slackwater.engines.spark.sources.log.options import LogOptions, check_names
from slackwater.engines.spark.sources.log.secrets import check_secret

ARRIVAL = "arrival_time"  # the column with the time of an entry's id
_SCHEMES = ("redis", "rediss", "unix")


@dataclass(frozen=True, kw_only=True)
class RedisOptions(LogOptions):
    """Where the streams are."""

    url: str  # redis://host:port/database, rediss:// with TLS, unix:///path
    streams: tuple[str, ...]
    password: str | None = None  # env:VARIABLE
    arrival: bool = False  # whether rows carry ``arrival_time``

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.streams, "stream")
        try:
            parts = urlsplit(self.url)
            written_out = parts.password
            _ = parts.port
        except ValueError as error:
            raise UsageError(f"{self.url!r} is no address of Redis: {error}") from None
        if parts.scheme not in _SCHEMES:
            raise UsageError(
                f"{self.url!r} is no address of Redis: write redis://host:port, "
                "rediss://host:port or unix:///path"
            )
        if written_out is not None or {"password", "ssl_password"} & parse_qs(parts.query).keys():
            raise UsageError(
                "a password in the url would show in Spark's plans: put it into an environment "
                "variable X and give password='env:X'"
            )
        if self.password is not None:
            check_secret("password", self.password)

    @property
    def server(self) -> str:
        """Its name in messages."""
        parts = urlsplit(self.url)
        return f"Redis at {parts.netloc.rpartition('@')[2] or parts.path}"
