"""Parameters of a stage: a JSON object checked strictly against a dataclass of numbers."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

from pilot_rl.records import read_json


def read_params[T](path: Path, kind: type[T]) -> T:
    """The parameters of a file. Raises ValueError naming what is unknown, missing or of another type."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise ValueError(f"{path.name}: an object is expected")
    hints = get_type_hints(kind)
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    unknown, missing = sorted(set(value) - names), sorted(names - set(value))
    if unknown or missing:
        raise ValueError(
            f"{path.name}: unknown: {', '.join(unknown) or 'none'}; missing: {', '.join(missing) or 'none'}"
        )
    return kind(**{name: _check(path.name, name, value[name], hints[name]) for name in sorted(names)})


def _check(file: str, name: str, value: Any, kind: type) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, kind):
        raise ValueError(f"{file}: {name} is {value!r}: {kind.__name__} is expected")
    return value
