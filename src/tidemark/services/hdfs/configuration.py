"""What the two servers of HDFS are told: files of their configuration folder, which is first on the class path."""

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
# Their web servers want these folders of the distribution, which no jar has; without pages they answer requests all the
# same.
PAGES = ("hdfs", "datanode", "static")


def write_configuration(folder: Path, site: Mapping[str, object]) -> Path:
    """The folder `folder`, made with `site` as both of the files that settings are looked for in."""
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
