"""Conformance of engines, of complete tables over HDFS, and of catalogs behind a faulty server."""
