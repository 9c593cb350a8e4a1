"""Configuration of the two HDFS servers: files of a folder that comes first on the class path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from tidemark.paths import private_directory
from tidemark.services.programs.process import give

LOGGING = """\
log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""
# Folders of the distribution that the web servers require and no jar contains; empty ones are enough to answer
# requests.
PAGES = ("hdfs", "datanode", "static")


def write_configuration(folder: Path, site: Mapping[str, object]) -> Path:
    """Create `folder` with `site` as both site files and a logging configuration, and return it."""
    give(private_directory(folder))
    properties = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(_word(value))}</value></property>\n"
        for name, value in site.items()
    )
    text = f'<?xml version="1.0"?>\n<configuration>\n{properties}</configuration>\n'
    for name, content in (("core-site.xml", text), ("hdfs-site.xml", text), ("log4j.properties", LOGGING)):
        (folder / name).write_text(content)
        give(folder / name)
    for page in PAGES:
        give(private_directory(folder / "webapps"))
        give(private_directory(folder / "webapps" / page))
    return folder


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
