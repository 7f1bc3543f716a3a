"""Submits SQL to a Flink, without a compile step: its table environment, driven through Py4J."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from slackwater.core.errors import EngineError
from slackwater.engines.outside.http import Endpoint
from slackwater_bench.flink.cluster import OPENS, classpath, find_flink


class SqlClient:
    """One JVM that plans and submits; ends with the ``with`` block, its jobs go on.

    Parameters
    ----------
    rest
        Address of the JobManager.
    home
        See :func:`~slackwater_bench.flink.cluster.find_flink`.
    jars
        Of connectors.
    """

    def __init__(self, rest: str, home: Path | None = None, jars: Sequence[Path] = ()) -> None:
        self.rest = rest
        self._jars = jars
        self._home = find_flink() if home is None else home
        self._gateway: JavaGateway | None = None

    def __enter__(self) -> Self:
        jar = next(Path(pyspark.__file__).parent.glob("jars/py4j-*.jar"))
        port, token = launch_gateway(
            jarpath=str(jar),
            classpath=classpath(self._home, self._jars),
            javaopts=["-Xmx768m", *OPENS],
            die_on_exit=True,
            enable_auth=True,
        )
        parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
        self._gateway = JavaGateway(gateway_parameters=parameters)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._gateway is not None:
            self._gateway.shutdown()

    def submit(
        self,
        name: str,
        statements: Iterable[str],
        conf: Mapping[str, str] | None = None,
        chaining: bool = False,
    ) -> str:
        """Run statements in an environment of their own; the id of the job of the last one.

        Parameters
        ----------
        name
            Of the job.
        statements
            ``CREATE …`` and, last, ``INSERT INTO …``.
        conf
            Flink's configuration for this job.
        chaining
            Whether operators are fused; without it each has a thread of its own.
        """
        assert self._gateway is not None, "outside of its `with` block"
        jvm: Any = self._gateway.jvm
        settings = jvm.org.apache.flink.configuration.Configuration()
        host, _, port = self.rest.removeprefix("http://").partition(":")
        for key, value in {
            "execution.target": "remote",
            "rest.address": host,
            "rest.port": port,
            "parallelism.default": "1",
            "pipeline.name": name,
            "pipeline.operator-chaining.enabled": "true" if chaining else "false",
            **(conf or {}),
        }.items():
            settings.setString(key, value)
        api = jvm.org.apache.flink.table.api
        builder = api.EnvironmentSettings.newInstance().inStreamingMode()
        environment = api.TableEnvironment.create(builder.withConfiguration(settings).build())
        try:
            for statement in statements:
                result = environment.executeSql(statement)
        except Py4JJavaError as error:
            raise EngineError(f"Flink refuses {name}: {_reason(error)}") from error
        return str(result.getJobClient().get().getJobID().toString())


def cancel(rest: str, job: str) -> None:
    """Stop a job."""
    endpoint = Endpoint(rest)
    endpoint.patch(f"/jobs/{job}?mode=cancel")
    endpoint.close()


def _reason(error: Py4JJavaError) -> str:
    """Return the innermost cause, in one line."""
    cause = error.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    return str(cause.toString()).splitlines()[0]
