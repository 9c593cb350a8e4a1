"""Removal of objects that an earlier, killed pipeline left on external servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tidemark.config import ServicesConfig
from tidemark.paths import Workspace
from tidemark.services import outside
from tidemark.services.base import Service, ServiceContext
from tidemark.services.engines.connect import KafkaConnect
from tidemark.services.engines.flink import Flink
from tidemark.services.iceberg.rest import IcebergRest
from tidemark.services.kafka import Kafka
from tidemark.services.outside import Made
from tidemark.services.polaris import Polaris
from tidemark.services.postgres import Postgres

Address = Mapping[str, str]


def _polaris(workspace: Workspace, folder: Path, address: Address) -> Polaris:
    config = ServicesConfig(
        polaris_address=address["uri"],
        polaris_catalog=address["catalog"],
        polaris_client_id=address["client_id"],
        polaris_secret_file=address.get("secret_file"),
    )
    return Polaris.from_config(ServiceContext(workspace, folder, config))


# Reconstructs the server of a ledger entry; secrets are read from their original source.
AGAIN: Mapping[str, Callable[[Workspace, Path, Address], Service]] = {
    Postgres.name: lambda workspace, folder, at: Postgres(workspace, folder, at["dsn"]),
    Kafka.name: lambda workspace, folder, at: Kafka(workspace, folder, at["bootstrap"]),
    IcebergRest.name: lambda workspace, folder, at: IcebergRest(
        workspace, folder, address=at["uri"], warehouse=at["warehouse"]
    ),
    Polaris.name: _polaris,
    KafkaConnect.name: lambda workspace, folder, at: KafkaConnect(workspace, folder, address=at["uri"]),
    Flink.name: lambda workspace, folder, at: Flink(workspace, folder, at["uri"]),
}


def drop_leftovers(workspace: Workspace) -> None:
    """Drop objects recorded in ledgers of dead processes; report failures, whose entries stay recorded."""

    def drop(made: Made) -> None:
        AGAIN[made.service](workspace, workspace.work / made.service, made.address).drop(made.name)

    outside.drop_leftovers(workspace, drop)
