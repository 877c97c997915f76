"""Files that stages leave behind: canonical JSON, JSON lines, sha256 and where a run took place.

Bytes written here are a function of the value alone: sorted keys, no spaces, UTF-8, a final newline.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def canonical(value: object) -> bytes:
    """The one byte form of a JSON value. Raises ValueError on NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def write_json(path: Path, value: object) -> None:
    """Writes `value` as canonical JSON, indented for a reader, in one replace."""
    text = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    _replace(path, text.encode() + b"\n")


def write_lines(path: Path, rows: Iterable[object]) -> int:
    """Writes one canonical JSON value a line, in one replace. Returns the number of lines."""
    lines = [canonical(row) + b"\n" for row in rows]
    _replace(path, b"".join(lines))
    return len(lines)


def read_json(path: Path) -> Any:
    """The JSON value of a file."""
    return json.loads(path.read_bytes())


def read_lines(path: Path) -> Iterator[Json]:
    """The JSON values of a file with one a line."""
    with path.open("rb") as file:
        for line in file:
            yield json.loads(line)


def sha256(data: bytes) -> str:
    """Lower-case hex sha256."""
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: Path) -> str:
    """Lower-case hex sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_files(root: Path, pattern: str = "*") -> dict[str, str]:
    """sha256 of each file under `root` that fits, by its path with `/`."""
    files = sorted(p for p in root.rglob(pattern) if p.is_file() and "__pycache__" not in p.parts)
    return {p.relative_to(root).as_posix(): sha256_file(p) for p in files}


def describe_sources(upstream: Path, stage: Path) -> Json:
    """Hashes of what ran: the upstream source, and the pilot's own, of the stage and of this library."""
    return {
        "upstream": sha256(canonical(sha256_files(upstream))),
        "upstream_files": sha256_files(upstream, "*.py"),
        "stage": sha256_files(stage, "*.py"),
        "pilot_rl": sha256_files(Path(__file__).parent, "*.py"),
    }


def describe_environment() -> Json:
    """Interpreter, platform, distributions and the variables that steer the numerics. No host name, no path."""
    return {
        "python": platform.python_version(),
        "implementation": sys.implementation.name,
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "libc": "-".join(platform.libc_ver()),
        "cpus": os.cpu_count(),
        "cpu": _cpu_model(),
        "distributions": {d.metadata["Name"]: d.version for d in _distributions()},
        "variables": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(("JAX_", "XLA_", "OMP_", "OPENBLAS_", "PYTHONHASHSEED"))
        },
    }


def _distributions() -> list[metadata.Distribution]:
    return sorted(metadata.distributions(), key=lambda d: d.metadata["Name"].lower())


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(data)
    partial.replace(path)


def sum_by(rows: Iterable[Mapping[str, Any]], key: str, names: Iterable[str]) -> dict[str, int]:
    """How many rows have each value of `key`; every name of `names` is in the answer."""
    counts = dict.fromkeys(names, 0)
    for row in rows:
        counts[row[key]] = counts.get(row[key], 0) + 1
    return counts
