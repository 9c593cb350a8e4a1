"""Values printed in the thesis, from another machine: shown next to Tidemark's, never mixed with them.

Source: "Evaluating Data Stream Write Performance in Lakehouse Systems", tables 4.1 to 6.1. Its systems are keyed
by Tidemark's names for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.runs.spec import BATCH, SINGLE

ORIGIN = "thesis, another machine"


@dataclass(frozen=True, slots=True)
class MedianIqr:
    median: float
    iqr: float


@dataclass(frozen=True, slots=True)
class Files:
    """Files of the three runs together; sizes in MB."""

    data_files: int
    data_mb: float
    metadata_files: int
    metadata_mb: float


HARDWARE = {
    "OS": "Linux Mint 22.3",
    "CPU": "AMD Ryzen 7 5700U, 1.8 GHz base clock",
    "Cores": "8 cores, 16 threads",
    "Memory": "2 x 8 GB DDR4 at 1600 MHz",
    "Disk": "Intel 660p 1 TB NVMe M.2",
}
SOFTWARE = {
    "Python": "3.12",
    "Kafka": "4.1.0",
    "PostgreSQL": "18.0",
    "Polaris": "1.3.0-incubating",
    "DuckDB": "1.4.4",
    "PyIceberg": "0.10.0",
    "PyArrow": "22.0.0",
    "confluent-kafka": "2.12.2",
}
DISK_MB = {  # tables 5.1 and 5.4: MB written per second
    SINGLE: {
        "ducklake": MedianIqr(2.154, 0.502),
        "iceberg-pyiceberg": MedianIqr(0.291, 0.594),
        "ducklake-inlined": MedianIqr(1.204, 0.193),
        "iceberg-duckdb": MedianIqr(0.459, 0.380),
    },
    BATCH: {
        "ducklake": MedianIqr(0.154, 0.341),
        "iceberg-pyiceberg": MedianIqr(0.258, 0.502),
        "iceberg-duckdb": MedianIqr(0.242, 0.727),
        "ducklake-inlined": MedianIqr(0.573, 0.372),
    },
}
WRITE_MS = {  # tables 5.2 and 5.5
    SINGLE: {
        "ducklake": MedianIqr(9.889, 0.667),
        "iceberg-pyiceberg": MedianIqr(346.208, 341.194),
        "ducklake-inlined": MedianIqr(9.169, 0.711),
        "iceberg-duckdb": MedianIqr(124.303, 22.650),
    },
    BATCH: {
        "ducklake": MedianIqr(77.439, 6.942),
        "iceberg-pyiceberg": MedianIqr(644.842, 84.695),
        "ducklake-inlined": MedianIqr(189.746, 10.625),
        "iceberg-duckdb": MedianIqr(160.086, 8.189),
    },
}
FLUSH_S = {  # tables 5.3 and 5.6, by run
    SINGLE: (0.219874, 0.205867, 0.193615),
    BATCH: (2.287, 1.992, 1.974),
}
FILES = {  # table 6.1
    ("iceberg-duckdb", SINGLE): Files(7_249, 21.4, 21_785, 5_400.0),
    ("iceberg-duckdb", BATCH): Files(1_242, 46.4, 3_732, 183.5),
}
MERGE_S = 13.0  # section 6.3: about 30,000 files of one event each
EVENTS_OF_MERGE = 30_000
