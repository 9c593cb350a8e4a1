"""A headless Chromium for tests: real keys, real window sizes, and a record of every console message and request.

It speaks the DevTools protocol over a pipe, so that no package and no port is needed.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WAIT_S = 60.0
# A page with scripts says when it is built.
READY = "document.readyState === 'complete' && (!document.scripts.length || document.body.dataset.ready === 'yes')"
KEYS = {  # name: (code, virtual key code, text)
    "Tab": ("Tab", 9, ""),
    "Enter": ("Enter", 13, "\r"),
    " ": ("Space", 32, " "),
    "Escape": ("Escape", 27, ""),
    "n": ("KeyN", 78, "n"),
    "+": ("Equal", 187, "+"),
    "0": ("Digit0", 48, "0"),
}


class Browser:
    """A Chromium process with a separate profile below `folder`."""

    def __init__(self, folder: Path) -> None:
        there, self._write = os.pipe()
        self._read, back = os.pipe()
        # Duplicate to high numbers first: one of the four may be 3 or 4, the browser's input and output descriptors.
        theirs = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 20) for each in (there, back)]

        def hand_over() -> None:
            os.dup2(theirs[0], 3)
            os.dup2(theirs[1], 4)

        command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        command += ["--no-first-run", "--disable-background-networking", f"--user-data-dir={folder / 'profile'}"]
        self.process = subprocess.Popen(
            [*command, "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=hand_over,
            close_fds=False,
        )
        for each in (there, back, *theirs):
            os.close(each)
        self._buffer, self._number = b"", 0
        self.pages: dict[str, Page] = {}

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + WAIT_S
        while True:
            found = self._next(deadline, method)
            if found.get("id") == self._number:
                if "error" in found:
                    raise AssertionError(f"{method}: {found['error']}")
                result: dict[str, Any] = found["result"]
                return result
            if (page := self.pages.get(found.get("sessionId", ""))) is not None:
                page.note(found.get("method", ""), found.get("params", {}))

    def _next(self, deadline: float, method: str) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"{method}: the browser gave no answer in {WAIT_S:g} s")
            read = os.read(self._read, 1 << 20)
            if not read:
                raise AssertionError(f"{method}: the browser has ended, with {self.process.poll()}")
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def open(self, path: Path, fragment: str = "", *, width: int = 1280, height: int = 900, dark: bool = False) -> Page:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = self.pages[session] = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        page.go(path.as_uri() + fragment)
        return page

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._read)
        os.close(self._write)


@dataclass
class Page:
    browser: Browser
    session: str
    target: str
    problems: list[str] = field(default_factory=list)  # errors and warnings of the page
    requests: list[str] = field(default_factory=list)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def note(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.problems.append(json.dumps(parameters["args"]))
        elif method == "Log.entryAdded":
            self.problems.append(json.dumps(parameters["entry"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def go(self, address: str) -> None:
        self.call("Page.navigate", url=address)
        deadline = time.monotonic() + WAIT_S
        while not self.run(READY):
            assert time.monotonic() < deadline, f"the page was not built; it said: {self.problems}"
            time.sleep(0.02)
        self.settle()

    def run(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page, awaiting a promise."""
        made = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in made, made["exceptionDetails"]
        return made["result"].get("value")

    def settle(self) -> None:
        """Wait until the page is drawn: observers and `toggle` events fire one frame late, only in the front tab."""
        self.call("Page.bringToFront")
        self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 30)))")

    def press(self, key: str, *, shift: bool = False) -> None:
        code, number, text = KEYS[key]
        told = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **told)
        self.call("Input.dispatchKeyEvent", type="keyUp", **told)

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)
        del self.browser.pages[self.session]
