"""What the controller starts for one rollout: runs the harness against the gateway and reports the reward.

A failure of the gateway or of the tool is reported as an event of its kind and ends the worker with a non-zero
status; it never becomes a reward.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from collections.abc import Mapping
from typing import Protocol

from pilot_rl.calculator import Endpoint, ModelUnavailable, ToolFailed, run_episode
from pilot_rl.process import die_with_parent

FAILURE_EVENT = "episode_failure"
EXIT_FAILED = 70


class Episode(Protocol):
    """A harness: plays one episode and gives the final answer, or None."""

    def __call__(self, endpoint: Endpoint, question: str, *, seed: int, turns: int, max_tokens: int) -> str | None:
        """Raises ModelUnavailable, ToolFailed."""
        ...


class Agent:
    """The class that `config.local.agent_class` of a rollout names."""

    def run(self) -> None:
        """One episode, from the variables of the rollout's `env_map`."""
        play(run_episode)


def play(episode: Episode) -> None:
    """Plays one episode and reports its reward, or its failure and exits."""
    die_with_parent()
    env = os.environ
    try:
        answer = episode(
            Endpoint(env["AGL_OPENAI_BASE_URL"], env["AGL_KEY"]),
            env["PILOT_QUESTION"],
            seed=int(env["PILOT_SEED"]),
            turns=int(env["PILOT_TURNS"]),
            max_tokens=int(env["PILOT_MAX_TOKENS"]),
        )
    except (ModelUnavailable, ToolFailed) as error:
        kind = "gateway" if isinstance(error, ModelUnavailable) else "tool"
        _post_event(env, FAILURE_EVENT, {"kind": kind, "message": str(error)})
        sys.exit(EXIT_FAILED)
    _post_event(env, "reward", {"value": score(answer, env["PILOT_ANSWER"]), "source": "agent"})


def score(answer: str | None, expected: str) -> float:
    """1 where the final answer is the expected text, else 0."""
    return float(answer == expected)


def _post_event(env: Mapping[str, str], kind: str, data: Mapping[str, object]) -> None:
    """Reports an event of this rollout to the gateway."""
    request = urllib.request.Request(
        env["AGL_EVENT_URL"],
        json.dumps({"event_type": kind, "data": data}).encode(),
        {"authorization": f"Bearer {env['AGL_KEY']}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        response.read()
