"""Noise is keyed by question, sample and turn, and by nothing else."""

import numpy as np

from pilot_rl.noise import gumbel


def test_it_is_a_function_of_its_key() -> None:
    assert np.array_equal(gumbel("7*8", 1, 0, 0, 263), gumbel("7*8", 1, 0, 0, 263))


def test_each_part_of_the_key_counts() -> None:
    keys = [("7*8", 1, 0, 0), ("7*9", 1, 0, 0), ("7*8", 2, 0, 0), ("7*8", 1, 1, 0), ("7*8", 1, 0, 1)]

    drawn = [gumbel(*key, 263) for key in keys]

    assert all(not np.array_equal(a, b) for i, a in enumerate(drawn) for b in drawn[:i])


def test_it_has_the_moments_of_a_gumbel() -> None:
    drawn = np.concatenate([gumbel("x", seed, 0, 0, 1000) for seed in range(50)])

    assert abs(drawn.mean() - 0.5772) < 0.02
    assert abs(drawn.std() - np.pi / np.sqrt(6)) < 0.02
