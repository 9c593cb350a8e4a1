"""An index of OpenSearch, each batch written by one bulk request of JSON documents over HTTP.

It is a stand-in for Elasticsearch, of which OpenSearch is a fork: no registry has a server of either that is ready to
start, and OpenSearch's is made of its jars. One writer at a time has such an index; it may be another process than the
one that created it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from http.client import HTTPConnection
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from tidemark.errors import SystemFailure
from tidemark.runs.manifest import Footprint
from tidemark.services.base import Service
from tidemark.services.opensearch import OpenSearch
from tidemark.systems.base import Context, Durability, PerWrite
from tidemark.systems.tables import TableSystem
from tidemark.systems.writers import OpenedBy, TableWriter

if TYPE_CHECKING:
    import pyarrow as pa

ANSWER_S = 180.0
PAGE = 10_000  # documents of an answer: the most that an index allows
# A keyword longer than this is in the document and cannot be searched for: Lucene refuses terms of 32,766 bytes.
LONGEST_KEYWORD = 8191


as_json = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=datetime.isoformat
).encode


def document(row: Mapping[str, Any]) -> str:
    """Return a row as JSON, with times as ISO 8601 has them, and with text for NaN and infinity, which JSON lacks."""
    try:
        return as_json(row)
    except ValueError:
        lacking = {name: str(value) for name, value in row.items() if isinstance(value, float) and not isfinite(value)}
        return as_json({**row, **lacking})


class OpenSearchClient(TableWriter):
    """A connection to the server, and the name of an index there; a bulk request may be carried out in part."""

    def __init__(self, host: str, port: int, index: str) -> None:
        self._connection = HTTPConnection(host, port, timeout=ANSWER_S)
        self._index = index

    def ask(self, method: str, path: str, content: Any = None) -> Any:
        """Return the answer to `content`, bytes or what JSON can hold; raise SystemFailure if it is refused.

        `path` is one of the index, unless it begins with a slash.
        """
        body = content if content is None or isinstance(content, bytes) else as_json(content).encode()
        path = path if path.startswith("/") else f"/{self._index}/{path}"
        try:
            self._connection.request(method, path, body, {"Content-Type": "application/json"})
            with self._connection.getresponse() as answer:
                status, text = answer.status, answer.read()
        except BaseException:
            self.close()  # the answer to this request must not be taken for that to the next one
            raise
        if status >= 300:
            raise SystemFailure(f"OpenSearch refused to {method} {path}: {status} {text[:2000].decode()}")
        return json.loads(text)

    def write(self, rows: pa.Table) -> None:
        """Send `rows` in one bulk request; the server names the documents. Raise SystemFailure if one is refused."""
        lines = "".join(f'{{"create":{{}}}}\n{document(row)}\n' for row in rows.to_pylist())
        answer = self.ask("POST", "_bulk", lines.encode())
        if answer["errors"]:
            refused = [item["create"]["error"] for item in answer["items"] if "error" in item["create"]]
            raise SystemFailure(f"OpenSearch refused {len(refused)} of {rows.num_rows} documents: {refused[0]}")

    def count(self) -> int:
        self.ask("POST", "_refresh")  # a search sees what was written before it
        return int(self.ask("GET", "_count")["count"])

    def documents(self, **wanted: Any) -> Iterator[dict[str, Any]]:
        """Yield all documents with what is `wanted` of each; raise SystemFailure if they are not as many as counted."""
        count, found = self.count(), 0
        page = self.ask("POST", "_search?scroll=5m", {"size": PAGE, "sort": ["_doc"], **wanted})
        while hits := page["hits"]["hits"]:
            found += len(hits)
            yield from hits
            page = self.ask("POST", "/_search/scroll", {"scroll": "5m", "scroll_id": page["_scroll_id"]})
        self.ask("DELETE", "/_search/scroll", {"scroll_id": page["_scroll_id"]})
        if found != count:
            raise SystemFailure(f"OpenSearch counts {count} documents and found {found}")

    def close(self) -> None:
        self._connection.close()  # the next request opens it again


class OpenSearchIndex(TableSystem):
    name: ClassVar[str] = "opensearch"
    title: ClassVar[str] = "OpenSearch (stand-in)"
    format: ClassVar[str] = "Lucene"
    client: ClassVar[str] = "HTTP"
    catalog: str = "OpenSearch"
    needs: ClassVar[tuple[type[Service], ...]] = (OpenSearch,)
    compressions: ClassVar[frozenset[str]] = frozenset()
    notes: tuple[str, ...] = (
        "a stand-in for Elasticsearch: the server of its fork, made of its jars, with a heap of 1 GB",
        "an index with one shard and no replica, each column a field for searches, and the document as written",
        "a batch is a bulk request of JSON documents, each of which the server takes or refuses by itself",
        "a search finds a document within a second of its write, not at once (refresh_interval)",
    )
    durability: Durability = Durability(
        "The log of the index (translog) is on the disk when a bulk request is answered (index.translog.durability: "
        "request, the default); Lucene's files come later.",
        server_syncs_per_write={OpenSearch: PerWrite(2, 5)},
        remark="once the log and once its checkpoint, and mostly both again for the checkpoint alone",
    )
    hands_over: ClassVar[bool] = True

    def __init__(self, context: Context, options: Any) -> None:
        super().__init__(context, options)
        self._index = f"trips-{uuid4().hex}"
        self._client = self.client_factory().open()

    @classmethod
    def versions(cls) -> Mapping[str, str]:
        return {"Python's http.client": "of this Python"}

    def settings(self) -> Mapping[str, str]:
        (found,) = self._client.ask("GET", "_settings?include_defaults=true&flat_settings=true").values()
        known = found["defaults"] | found["settings"]
        names = ("number_of_shards", "number_of_replicas", "translog.durability", "refresh_interval", "codec")
        return {name: known[f"index.{name}"] for name in names}

    def create(self, schema: pa.Schema) -> None:
        self._schema = schema
        fields = {field.name: field_of(field.type) for field in schema}
        settings = {"number_of_shards": 1, "number_of_replicas": 0}
        self._client.ask("PUT", "", {"settings": settings, "mappings": {"properties": fields}})

    def write(self, rows: pa.Table) -> None:
        self._client.write(rows)

    def client_factory(self) -> OpenedBy[OpenSearchClient]:
        host, port = self.context.server(OpenSearch).host_and_port()
        return OpenedBy(OpenSearchClient, {"host": host, "port": port, "index": self._index})

    def reconnect(self) -> None:
        self._client = self.client_factory().open()

    @property
    def reader(self) -> str:
        return "OpenSearch, as the writer's server, on a separate connection: nothing else reads its files"

    def ids(self) -> pa.ChunkedArray:
        import pyarrow as pa

        found = self._read(_source=False, stored_fields="_none_", docvalue_fields=["id"])
        return pa.chunked_array([pa.array([hit.get("fields", {"id": [None]})["id"][0] for hit in found], pa.int64())])

    def read(self) -> pa.Table:
        import pyarrow as pa

        rows = [hit["_source"] for hit in self._read()]
        for field in self._schema:
            parsed = datetime.fromisoformat if pa.types.is_timestamp(field.type) else float
            if parsed is not float or pa.types.is_floating(field.type):
                for row in rows:
                    row[field.name] = None if row[field.name] is None else parsed(row[field.name])
        return pa.Table.from_pylist(rows, self._schema)

    def _read(self, **wanted: Any) -> list[dict[str, Any]]:
        with closing(self.client_factory().open()) as client:
            return list(client.documents(**wanted))

    def inlined_rows(self) -> int:
        return self._client.count()

    def footprint(self) -> Footprint:
        """Return the server's own count of the index's bytes, with its log, as those of a catalog."""
        found = self._client.ask("GET", "_stats/store,translog")["_all"]["total"]
        return Footprint(0, 0, 0, 0, found["store"]["size_in_bytes"] + found["translog"]["size_in_bytes"])

    def close(self) -> None:
        self._client.close()

    def drop(self) -> None:
        with closing(self.client_factory().open()) as client:
            client.ask("DELETE", "?ignore_unavailable=true")


def field_of(kind: pa.DataType) -> dict[str, Any]:
    """Return the field that a column of this type becomes in the index."""
    import pyarrow as pa

    if pa.types.is_integer(kind):
        return {"type": "long"}
    if pa.types.is_floating(kind):
        return {"type": "double", "ignore_malformed": True}  # for NaN and infinity
    if pa.types.is_timestamp(kind):
        return {"type": "date"}
    return {"type": "keyword", "ignore_above": LONGEST_KEYWORD}
