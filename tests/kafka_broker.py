"""A real Kafka broker on loopback: one node, from the jars that ``scripts/kafka.sh`` fetches."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.waiting import eventually

JARS = Path(sys.prefix) / "kafka"
# What Spark needs to read from it.
CONNECTOR = ("spark-sql-kafka-*", "spark-token-provider-kafka-*", "kafka-clients-*", "*pool2-*")


def connector_jars() -> list[str]:
    return [str(jar) for pattern in CONNECTOR for jar in JARS.glob(f"{pattern}.jar")]


class KafkaBroker:
    """Broker and controller in one process."""

    def __init__(self, folder: Path) -> None:
        if not (JARS / "complete").exists():
            pytest.skip("no Kafka broker: sh scripts/kafka.sh fetches one, with Maven")
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
            "log.retention.ms": "-1",  # tests write rows of years ago
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
        eventually(self._answers, 60)

    def _java(self, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{JARS}/*", main, *arguments]
        return subprocess.Popen(command, stdout=self._log, stderr=self._log)

    def _answers(self) -> bool:
        assert self._process.poll() is None, "the broker has ended"
        try:
            return bool(self.admin.list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def create(self, topic: str, partitions: int = 1) -> None:
        self.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)

    def producer(self, **settings: str) -> Producer:
        return Producer({"bootstrap.servers": self.address, "enable.idempotence": True} | settings)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()


def free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as b:
        return one.getsockname()[1], b.getsockname()[1]
