"""Episodes -> rows to train on: one sequence of tokens each, with the sampled ones marked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pilot_rl.policy import pad
from pilot_rl.records import Json
from pilot_rl.rollouts import Episode


@dataclass(frozen=True)
class Row:
    """One episode. `mask` is 1 exactly where the policy sampled the token; `log_probs` is 0 elsewhere."""

    episode: Episode
    tokens: list[int]
    mask: list[int]
    log_probs: list[float]


def to_row(episode: Episode) -> Row:
    """Joins the calls of an episode. Raises ValueError where a prompt does not go on from what was there before:
    the harness rewrote its context, and one sequence cannot say so."""
    tokens: list[int] = []
    mask: list[int] = []
    log_probs: list[float] = []
    for i, call in enumerate(episode.calls):
        if call.prompt[: len(tokens)] != tokens:
            raise ValueError(f"call {i} of rollout {episode.task.rollout_id} does not extend the one before it")
        if len(call.response) != len(call.log_probs):
            raise ValueError(
                f"call {i} of rollout {episode.task.rollout_id}: tokens and log-probabilities differ in number"
            )
        added = len(call.prompt) - len(tokens)
        tokens = call.prompt + call.response
        mask += [0] * added + [1] * len(call.response)
        log_probs += [0.0] * added + call.log_probs
    return Row(episode, tokens, mask, log_probs)


def to_json(row: Row) -> Json:
    """The row as stored."""
    task = row.episode.task
    return {
        "rollout_id": task.rollout_id,
        "group_id": task.question.task_id,
        "sample": task.sample,
        "seed": task.seed,
        "reward": row.episode.reward,
        "policy_revision": row.episode.calls[0].policy_revision,
        "policy_version": row.episode.calls[0].policy_version,
        "tokens": row.tokens,
        "mask": row.mask,
        "log_probs": row.log_probs,
    }


@dataclass(frozen=True)
class Batch:
    """Rows as arrays: [rows, length]; `advantages` is [rows]."""

    tokens: NDArray[np.int32]
    mask: NDArray[np.float32]
    log_probs: NDArray[np.float32]
    advantages: NDArray[np.float32]


def to_batch(rows: list[Row], length: int) -> Batch:
    """Rows in a fixed order, padded. Advantages are normalised within each group of one question."""
    ordered = sorted(rows, key=lambda row: (row.episode.task.question.task_id, row.episode.task.sample))
    groups: dict[str, list[float]] = {}
    for row in ordered:
        groups.setdefault(row.episode.task.question.task_id, []).append(row.episode.reward)
    advantages = [
        (row.episode.reward - float(np.mean(group))) / (float(np.std(group)) + 1e-6)
        for row in ordered
        for group in [groups[row.episode.task.question.task_id]]
    ]
    return Batch(
        tokens=np.stack([pad(row.tokens, length) for row in ordered]),
        mask=np.stack([_pad_float([float(m) for m in row.mask], length) for row in ordered]),
        log_probs=np.stack([_pad_float(row.log_probs, length) for row in ordered]),
        advantages=np.array(advantages, np.float32),
    )


def _pad_float(values: list[float], length: int) -> NDArray[np.float32]:
    return np.array(values + [0.0] * (length - len(values)), np.float32)
