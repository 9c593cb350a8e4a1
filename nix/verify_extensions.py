"""Fail unless every DuckDB extension below a site-packages folder is byte-identical to its wheel's record."""

from __future__ import annotations

import base64
import csv
import hashlib
import sys
from pathlib import Path


def main() -> None:
    site = Path(sys.argv[1])
    checked = 0
    for record in sorted(site.glob("duckdb_extension_*.dist-info/RECORD")):
        with record.open(newline="") as rows:
            for name, recorded, _ in csv.reader(rows):
                if not name.endswith(".duckdb_extension"):
                    continue
                found = hashlib.sha256((site / name).read_bytes()).digest()
                if recorded != "sha256=" + base64.urlsafe_b64encode(found).rstrip(b"=").decode():
                    sys.exit(f"{name}: changed since its wheel was made; DuckDB would refuse its signature")
                checked += 1
    if checked == 0 and any(site.glob("duckdb-*.dist-info")):
        sys.exit(f"{site}: no DuckDB extension found")


if __name__ == "__main__":
    main()
