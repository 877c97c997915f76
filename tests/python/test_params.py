"""Parameters are checked strictly: what is unknown, missing or of another type is named."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from pilot_rl.params import read_params


@dataclass(frozen=True)
class Sample:
    count: int
    rate: float


def write(folder: Path, value: object) -> Path:
    path = folder / "params.json"
    path.write_text(json.dumps(value))
    return path


def test_what_fits_is_read(tmp_path: Path) -> None:
    assert read_params(write(tmp_path, {"count": 2, "rate": 1}), Sample) == Sample(2, 1.0)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"count": 2}, "missing: rate"),
        ({"count": 2, "rate": 1, "more": 3}, "unknown: more"),
        ({"count": 2.5, "rate": 1}, "count is 2.5: int is expected"),
        ({"count": True, "rate": 1}, "count is True: int is expected"),
        ([], "an object is expected"),
    ],
)
def test_what_does_not_is_named(tmp_path: Path, value: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_params(write(tmp_path, value), Sample)
