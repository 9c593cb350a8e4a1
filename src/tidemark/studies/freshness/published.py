"""Values from the documentation of Iceberg's sink for Kafka Connect, and the versions that it states."""

from __future__ import annotations

ORIGIN = "Documentation"
KEY = "iceberg-kafka-connect"
DEFAULT_INTERVAL_S = 300  # iceberg.control.commit.interval-ms: 300000
SOFTWARE = {"Kafka Connect": "not stated", "Iceberg REST catalog": "not stated"}
