"""Tidemark, a benchmark that measures how fast a data stream can be written into a lakehouse table."""

__version__ = "0.1.0"
