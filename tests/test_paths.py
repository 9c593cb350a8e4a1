"""Files are replaced whole, and killed processes leave nothing beside them for good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tidemark.paths import write_atomically

KILLED = """
import os, signal, sys
from pathlib import Path
from tidemark.paths import replacing
with replacing(Path(sys.argv[1])) as file:
    file.write(b"half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "outcome[1].json"  # a name that is a pattern, too
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    (left,) = tmp_path.iterdir()
    assert killed.returncode == -signal.SIGKILL and left.name.startswith(".outcome[1].json.")
    others = {tmp_path / f".outcome[1].json.{os.getppid()}.tmp", tmp_path / ".outcome.json.1.tmp"}
    for other in others:  # another process writes the first; the second is of another file
        other.touch()
    write_atomically(path, "whole")
    assert set(tmp_path.iterdir()) == {path, *others} and path.read_text() == "whole"
