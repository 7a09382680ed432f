"""Running a few lines of Python in a process of their own, for what would end or change this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]


def run_python(code: str, *arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run `code`; with `check`, its failure is the test's, with what it printed."""
    path = os.pathsep.join([str(_ROOT / "src"), str(_ROOT)])
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    if check:
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done
