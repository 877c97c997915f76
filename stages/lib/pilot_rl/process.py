"""Processes that end with the one that started them, and groups that are stopped as a whole.

On Linux the kernel ends a child whose parent dies (PR_SET_PDEATHSIG) and hands orphans to us
(PR_SET_CHILD_SUBREAPER); elsewhere only the orderly paths (end of the block, SIGTERM, SIGINT) stop them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Has the kernel send this process a signal when its parent dies, or now where it is dead already."""
    parent = os.getppid()
    _prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def adopt_orphans() -> None:
    """Makes descendants whose parent died children of this process, so that they can be found and ended."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def exit_on_signals() -> None:
    """Turns SIGTERM, SIGINT and SIGHUP into SystemExit, so that `finally` and `with` stop what was started."""

    def leave(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, leave)


@contextlib.contextmanager
def running(
    argv: Sequence[str], *, environment: Mapping[str, str], cwd: Path, log: Path, grace: float
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in its own group while the block runs; then TERM, and KILL to the group after `grace` seconds."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            # Not by preexec_fn: that forks, and JAX's threads would leave the child with locks nobody opens.
            [sys.executable, "-c", _BECOME, *argv],
            env=dict(environment),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        stop_group(process, grace)


# TERM, not KILL: the controller ends its workers when told to stop.
_BECOME = """
import os, signal, sys
from pilot_rl.process import die_with_parent
die_with_parent(signal.SIGTERM)
os.execv(sys.argv[1], sys.argv[1:])
"""


def stop_group(process: subprocess.Popen[bytes], grace: float) -> None:
    """Ends the group that `process` leads. Safe where it has ended."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def end_strays(mark: str) -> list[int]:
    """Kills processes of ours that carry `mark` in their environment and outlived their group. Linux only."""
    ended = []
    for pid in _pids_with(mark):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
            ended.append(pid)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return ended


def _pids_with(mark: str) -> Iterator[int]:
    needle = mark.encode()
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        if pid == os.getpid():
            continue
        with contextlib.suppress(OSError):
            if needle in (folder / "environ").read_bytes():
                yield pid


def wait_until(ready: Callable[[], bool], *, seconds: float, every: float, what: str) -> None:
    """Polls `ready`. Raises TimeoutError naming `what`."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise TimeoutError(f"{what} within {seconds:g} s")
        time.sleep(every)
