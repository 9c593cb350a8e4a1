"""The complete path of `cold: reboot`, on a virtual machine that restarts itself."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ..conftest import MakeSandbox
from ..sandbox import Sandbox, complete
from .machine import WORKSPACE, Machine, missing

HOUR_NS = 3_600_000_000_000
UNIT = "/etc/systemd/system/tidemark-resume.service"
WANTED = "/etc/systemd/system/multi-user.target.wants/tidemark-resume.service"

# Run at every boot. The first boot types the command; later ones only watch, and step the clock inside a window; the
# unit that the command installed does the work. Once that unit is gone the machine switches off.
# The clock goes back first: librdkafka waits until a moment of the wall clock, and after a step forward and back such a
# moment may lie an hour ahead.
SCRIPT = """\
export PYTHONPATH={root}/src TIDEMARK_CACHE={cache} PATH=/usr/sbin:/usr/bin:/sbin:/bin
cd {root}
echo "BOOT $(cat /proc/sys/kernel/random/boot_id)"
if [ ! -e /typed ]; then
    touch /typed; sync
    {python} -m tidemark all --allow-reboot
    sleep 600
    echo "NEVER RESTARTED"; systemctl poweroff
fi
{python} - <<'PYTHON'
import glob, os, struct, subprocess, time
unit = {unit!r}
while os.path.exists(unit):
    for name in glob.glob({root!r} + "/.tidemark/*/*/counters"):
        try:
            produced, consumed, stop = struct.unpack("3q", open(name, "rb").read(24))
        except (OSError, struct.error):
            continue
        if consumed and not stop and not os.path.exists("/stepped"):
            open("/stepped", "w").close()
            time.clock_settime(time.CLOCK_REALTIME, time.time() - 3600)
            time.sleep(0.8)
            time.clock_settime(time.CLOCK_REALTIME, time.time() + 3600)
            print("STEPPED the clock by an hour, and back", flush=True)
    time.sleep(0.01)
PYTHON
echo "UNIT GONE"
cat {root}/results/logs/resume.log
sync
systemctl poweroff
"""


@pytest.mark.long(reason="an emulated machine is restarted for each series: an hour")
@pytest.mark.timeout(7200)
def test_machine_restarts_itself_once_per_series(make_sandbox: MakeSandbox, tmp_path: Path, cache: Path) -> None:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    sandbox = make_sandbox(
        {"protocol": "smoke", "systems": {"null": {}}, "modes": ["single", "batch"], "cold": "reboot"}, cache
    )
    script = SCRIPT.format(root=str(WORKSPACE), cache=sandbox.cache, python=Path(sys.prefix) / "bin/python", unit=UNIT)
    machine = Machine(tmp_path, sandbox, script)
    said = machine.run(timeout_s=5400)
    print(said)
    boots = re.findall(r"^BOOT ([0-9a-f-]{36})", said, re.MULTILINE)
    assert len(boots) == len(set(boots)) == 3, "one to prepare, and one a series"
    assert "waits for a restart" in said and "NEVER RESTARTED" not in said and "UNIT GONE" in said
    assert not machine.holds(UNIT) and not machine.holds(WANTED)

    machine.take_out(WORKSPACE / "results", sandbox.root)
    machine.take_out(WORKSPACE / ".tidemark", sandbox.root)
    check(sandbox, boots)
    assert "STEPPED" in said and machine.holds("/stepped")


def check(sandbox: Sandbox, boots: list[str]) -> None:
    """Check two series, each in a separate boot, cold and then hot, and timed by a clock that cannot be stepped."""
    assert list(complete(sandbox)) == []
    used: dict[str, set[str]] = {}
    for name, run in sandbox.runs().items():
        proof = run["cold_proof"]
        used.setdefault(run["series"]["id"], set()).add(proof["boot_id"])
        assert proof["method"] == "reboot"
        assert proof["verdict"] == ("cold" if run["cold"] else "hot"), (name, proof)
        assert run["window_s"] * 1e9 <= run["elapsed_ns"] < HOUR_NS / 10
        starts = pq.read_table(sandbox.root / "results" / name / "operations.parquet")["start_ns"].to_numpy()
        assert len(starts) and starts[0] >= 0 and (starts[1:] >= starts[:-1]).all()
    assert [len(ids) for ids in used.values()] == [1, 1]
    assert {next(iter(ids)) for ids in used.values()} == set(boots[1:])
    state = json.loads((sandbox.root / ".tidemark/reboots.json").read_text())
    assert state["resume"] is None and state["waiting"] is None
