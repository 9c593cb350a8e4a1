"""What the documentation of Iceberg's sink for Kafka Connect says, and which versions are of it here."""

from __future__ import annotations

ORIGIN = "Documentation"
KEY = "iceberg-kafka-connect"
DEFAULT_INTERVAL_S = 300  # iceberg.control.commit.interval-ms: 300000
SOFTWARE = {"Kafka Connect": "not told", "Iceberg REST catalog": "not told"}
