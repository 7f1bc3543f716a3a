"""Options of a source over Kafka topics."""

import json
from dataclasses import dataclass
from typing import Literal, get_args

from slackwater.core.errors import UsageError
from slackwater.engines.spark.sources.log.options import LogOptions, check_names
from slackwater.engines.spark.sources.log.secrets import check_secret

Value = Literal["bytes", "string", "json"]

# What a message has besides its value, with the types that Spark's own Kafka source gives.
MESSAGE_COLUMNS = {
    "key": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
}
# How settings end that must not show.
_SECRET = ("password", "passphrase", "secret", "key.pem", "token")
_OURS = {
    "bootstrap.servers",
    "enable.auto.commit",
    "enable.partition.eof",
    "auto.offset.reset",
    "group.id",
}


@dataclass(frozen=True, kw_only=True)
class KafkaOptions(LogOptions):
    """Where the topics are and what is wanted of their messages."""

    servers: str  # host:port, several with commas
    topics: tuple[str, ...]
    value: Value = "bytes"  # how a message's value is given
    columns: tuple[str, ...] = ()  # what else of a message is given
    settings: str = "{}"  # of the client library, a JSON object of texts

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.topics, "topic")
        if self.plan is not None and self.rows_per_batch is not None:
            raise UsageError("a sampled topic is read without rows_per_batch: leave it out")
        if not self.servers.strip():
            raise UsageError("name at least one server: host:port")
        if self.value not in get_args(Value):
            raise UsageError(f"value is {self.value!r}; it may be one of bytes, string, json")
        for column in self.columns:
            if column not in MESSAGE_COLUMNS:
                known = ", ".join(MESSAGE_COLUMNS)
                raise UsageError(f"a message has no {column!r}; columns may be {known}")
        for name, text in self.client_settings().items():
            if name in _OURS:
                raise UsageError(f"the setting {name} is the source's own; leave it out")
            if name.endswith(_SECRET):
                check_secret(name, text)

    def client_settings(self) -> dict[str, str]:
        """Settings of the client library."""
        try:
            found = json.loads(self.settings)
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
            raise UsageError(f"settings must be an object of texts, not {self.settings}")
        return found

    @property
    def server(self) -> str:
        """Its name in messages."""
        return f"Kafka at {self.servers}"
