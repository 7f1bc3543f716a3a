"""A real Kafka broker on loopback: one node, from the jars that ``scripts/kafka.sh`` fetches."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from slackwater.core.clock import Deadline
from slackwater.core.errors import EngineError, UsageError

JARS = Path(os.environ.get("VENV", sys.prefix)) / "kafka"  # VENV: from an environment beside
# What Spark needs to read from it.
CONNECTOR = ("spark-sql-kafka-*", "spark-token-provider-kafka-*", "kafka-clients-*", "*pool2-*")
START_S = 60.0


def is_installed() -> bool:
    """Tell whether the broker's jars are there."""
    return (JARS / "complete").exists()


def connector_jars() -> list[str]:
    """Return the jars that Spark needs to read from a broker."""
    return [str(jar) for pattern in CONNECTOR for jar in JARS.glob(f"{pattern}.jar")]


class KafkaBroker:
    """Broker and controller in one process.

    Parameters
    ----------
    folder
        Where it keeps everything.
    """

    def __init__(self, folder: Path) -> None:
        if not is_installed():
            raise UsageError("no Kafka broker: `sh scripts/kafka.sh` fetches one, with Maven")
        clients, peers = free_ports()
        self.address = f"127.0.0.1:{clients}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{peers}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{peers}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(folder / "data"),
            "log.retention.ms": "-1",  # rows of years ago are written, too
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
        }
        written = folder / "server.properties"
        written.write_text("\n".join(f"{key}={value}" for key, value in settings.items()))
        self._log = (folder / "log").open("wb")
        formatting = ("format", "--cluster-id", "AAAAAAAAAAAAAAAAAAAAAQ", "--config", str(written))
        self._java("kafka.tools.StorageTool", *formatting).wait()
        self._process = self._java("kafka.Kafka", str(written))
        self.admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        if not Deadline(START_S).wait_for(self._answers, every_s=0.1):
            self.stop()
            raise EngineError(f"the Kafka broker did not answer within {START_S:g} s")

    def _java(self, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{JARS}/*", main, *arguments]
        return subprocess.Popen(command, stdout=self._log, stderr=self._log)

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise EngineError("the Kafka broker has ended")
        try:
            return bool(self.admin.list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def create(self, topic: str, partitions: int = 1) -> None:
        """Make a topic."""
        self.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)

    def producer(self, **settings: str) -> Producer:
        """Return a producer that writes each row once."""
        return Producer({"bootstrap.servers": self.address, "enable.idempotence": True} | settings)

    def stop(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.wait()
        self._log.close()


def free_ports() -> tuple[int, int]:
    """Return two ports of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as b:
        return one.getsockname()[1], b.getsockname()[1]
