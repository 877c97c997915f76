"""Sampling noise as a pure function of what is asked: question, sample and turn. Never of time, order or length.

Two requests share noise exactly when all three agree, so a matched evaluation of two policies can give both the
same noise, and no two questions ever share theirs.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

DOMAIN = b"pilot gumbel noise v1"


def gumbel(question: str, seed: int, turn: int, position: int, size: int) -> NDArray[np.float64]:
    """Standard Gumbel noise for one sampled position of a turn."""
    if seed < 0 or turn < 0 or position < 0:
        raise ValueError("seed, turn and position are natural numbers")
    key = hashlib.shake_256(DOMAIN)
    text = question.encode()
    for number in (seed, turn, position, len(text)):
        key.update(number.to_bytes(16, "big"))
    key.update(text)
    words = np.frombuffer(key.digest(8 * size), dtype=">u8").astype(np.uint64)
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return -np.log(-np.log(uniform))
