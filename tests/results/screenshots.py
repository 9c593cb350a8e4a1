"""Pictures of the report and the site for the documentation: `python -m tests.results.screenshots` takes them.

They are of results that are shipped: the runs of smoke/streams.zip, and the reference results.
"""

from __future__ import annotations

import base64
import tempfile
import zipfile
from pathlib import Path

from tests.results.browser import Browser
from tests.results.links import REFERENCE

from tidemark.pipeline.build import build_claims, build_report
from tidemark.pipeline.site import build_site

TARGET = REFERENCE.parent / "docs" / "images"
RUNS = Path(__file__).with_name("smoke") / "streams.zip"
WIDTH, HEIGHT = 1000, 720


def pages(folder: Path) -> dict[str, Path]:
    """Make the pages below `folder`; return their paths by the name of their picture."""
    zipfile.ZipFile(RUNS).extractall(folder)
    results = folder / "results"
    build_claims(results)
    return {"report": build_report(results), "site": build_site(REFERENCE, [], folder / "site")}


def take(browser: Browser, page: Path, target: Path) -> None:
    """Write the first screen of a page as PNG."""
    shown = browser.open(page, width=WIDTH, height=HEIGHT)
    target.write_bytes(base64.b64decode(shown.call("Page.captureScreenshot", format="png")["data"]))
    shown.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        made, browser = pages(Path(name)), Browser(Path(name))
        try:
            for picture, page in made.items():
                take(browser, page, TARGET / f"{picture}.png")
        finally:
            browser.close()
