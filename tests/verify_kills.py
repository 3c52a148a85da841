"""`robustmdp reproduce --quick`, killed at ten random moments: same records, and nothing done twice. `make verify`."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from robustmdp.io.tables import read_table
from robustmdp.paper import NAMES
from robustmdp.paper.work import VOLATILE
from robustmdp.table import Table

MOMENTS = 10
LONGEST = 12.0  # seconds until a kill
COMMAND = [str(Path(sys.executable).with_name("robustmdp")), "reproduce", "--quick", "--out"]


def finished(out: Path) -> dict[str, Table]:
    """Tasks, by file."""
    return {path.name: read_table(path) for path in out.glob("unfinished/[!.]*.parquet")}


def records(out: Path) -> dict[str, Table]:
    return {name: read_table(path) for name in NAMES if (path := out / "records" / f"{name}.parquet").exists()}


def repeated(task: Table, found: Iterable[Table]) -> bool:
    """Was it done again? Its seconds, which no second run would hit, would be others."""
    return not any(set(task["seconds"].tolist()) <= set(table["seconds"].tolist()) for table in found)


def main(seed: int) -> int:
    draws, failures, kills = random.Random(seed), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        whole, out = Path(folder) / "whole", Path(folder) / "killed"
        subprocess.run([*COMMAND, str(whole)], check=True, capture_output=True)
        kept: dict[str, Table] = {}
        while kills < MOMENTS and len(records(out)) < len(NAMES):
            process = subprocess.Popen([*COMMAND, str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(draws.uniform(1.0, LONGEST))
            process.kill()
            if process.wait() != -signal.SIGKILL:  # it was quicker; the run below says whether all is well
                break
            kills += 1
            time.sleep(2.0)  # orphaned workers notice within a second
            now, complete = finished(out), records(out)
            for file, task in kept.items():
                failures += repeated(task, [now[file]] if file in now else complete.values())
            kept |= now
            print(
                f"kill {kills}: {len(now)} tasks and {len(complete)} experiments finished, {failures} failures",
                flush=True,
            )
        subprocess.run([*COMMAND, str(out)], check=True, capture_output=True)
        wanted, found = records(whole), records(out)
        failures += sum(repeated(task, found.values()) for task in kept.values())
        failures += sum(wanted[name].without(*VOLATILE) != found[name].without(*VOLATILE) for name in NAMES)
    print(f"{kills} kills, {failures} failures")
    return 1 if failures or kills == 0 else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
