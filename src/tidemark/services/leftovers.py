"""Removal of objects that an earlier, killed pipeline left on external servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidemark.config import ServicesConfig
from tidemark.paths import Workspace
from tidemark.services import outside
from tidemark.services.base import Service
from tidemark.services.engines.connect import KafkaConnect
from tidemark.services.engines.flink import Flink
from tidemark.services.iceberg.rest import IcebergRest, IcebergRestSettings
from tidemark.services.kafka import Kafka, KafkaSettings
from tidemark.services.outside import Made
from tidemark.services.polaris import Polaris, PolarisSettings, read_secret
from tidemark.services.postgres import Postgres, PostgresSettings

Address = Mapping[str, str]


def _polaris(workspace: Workspace, address: Address) -> Polaris:
    config = ServicesConfig(
        polaris_address=address["uri"],
        polaris_catalog=address["catalog"],
        polaris_client_id=address["client_id"],
        polaris_secret_file=address.get("secret_file"),
    )
    settings = PolarisSettings(
        address=address["uri"],
        catalog=address["catalog"],
        client_id=address["client_id"],
        client_secret=read_secret(config),
    )
    return Polaris(workspace, workspace.work / Polaris.name, settings)


# Reconstructs the server of a ledger entry; secrets are read from their original source.
AGAIN: Mapping[str, Callable[[Workspace, Address], Service]] = {
    Postgres.name: lambda workspace, address: Postgres(
        workspace, workspace.work / Postgres.name, PostgresSettings(address["dsn"])
    ),
    Kafka.name: lambda workspace, address: Kafka(
        workspace, workspace.work / Kafka.name, KafkaSettings(address["bootstrap"])
    ),
    IcebergRest.name: lambda workspace, address: IcebergRest(
        workspace,
        workspace.work / IcebergRest.name,
        IcebergRestSettings(address=address["uri"], warehouse=address["warehouse"]),
    ),
    Polaris.name: _polaris,
    KafkaConnect.name: lambda workspace, address: KafkaConnect(
        workspace, workspace.work / KafkaConnect.name, address=address["uri"]
    ),
    Flink.name: lambda workspace, address: Flink(workspace, workspace.work / Flink.name, address["uri"]),
}


def drop_leftovers(workspace: Workspace) -> None:
    """Drop objects recorded in ledgers of dead processes; report failures, whose entries stay recorded."""

    def drop(made: Made) -> None:
        AGAIN[made.service](workspace, made.address).drop(made.name)

    outside.drop_leftovers(workspace, drop)
