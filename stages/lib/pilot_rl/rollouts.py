"""Rollouts through the gateway: tasks in, raw states and events out, and what each of them came to.

A rollout that did not end as an episode is a failure of a kind (gateway, tool, worker), with its evidence.
It never has a reward.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pilot_rl.gateway import Gateway
from pilot_rl.questions import Question
from pilot_rl.records import Json

Kind = Literal["gateway", "tool", "worker"]
FAILURE_KINDS: tuple[Kind, ...] = ("gateway", "tool", "worker")


@dataclass(frozen=True)
class Task:
    """One rollout to be made. `seed` and the question key its noise."""

    rollout_id: str
    question: Question
    sample: int
    seed: int


@dataclass(frozen=True)
class Limits:
    """Budget of one rollout."""

    turns: int
    max_tokens: int
    timeout_seconds: int


@dataclass(frozen=True)
class Rollout:
    """What the gateway kept of a task, raw, read before it stops."""

    task: Task
    detail: Json
    events: list[Json]

    @property
    def state(self) -> str:
        """`succeeded`, `failed` or `cancelled`."""
        return str(self.detail["rollout"]["status"]["state"])


def run_rollouts(
    gateway: Gateway,
    tasks: Sequence[Task],
    limits: Limits,
    *,
    is_train: bool,
    say: Callable[[str], None],
    agent: str = "pilot_rl.worker:Agent",
) -> list[Rollout]:
    """Brings every task to a terminal state. In the order of `tasks`. Raises TimeoutError, GatewayFailed."""
    gateway.post("/api/rollouts", [_to_request(task, limits, is_train, agent) for task in tasks])
    wanted = {task.rollout_id for task in tasks}
    ended: set[str] = set()
    deadline = time.monotonic() + limits.timeout_seconds * (len(tasks) + 1)
    after, told = 0, time.monotonic()
    while not wanted <= ended:
        gateway.check()
        page = gateway.get(f"/api/rollouts/terminal?after={after}&limit=1000")
        after = page["next_after"]
        ended |= {item["rollout_id"] for item in page["items"]}
        now = time.monotonic()
        if now > deadline:
            raise TimeoutError(f"{len(wanted - ended)} rollouts have not ended in time")
        if now - told > 5:
            told = now
            say(f"rollouts {len(wanted & ended)}/{len(wanted)}")
        time.sleep(0.1)
    say(f"rollouts {len(wanted)}/{len(wanted)}")
    return [
        Rollout(
            task,
            gateway.get(f"/api/rollouts/{task.rollout_id}"),
            gateway.get(f"/api/rollouts/{task.rollout_id}/events"),
        )
        for task in tasks
    ]


def _to_request(task: Task, limits: Limits, is_train: bool, agent: str) -> Json:
    question = task.question
    return {
        "rollout_id": task.rollout_id,
        "is_train": is_train,
        "input": {
            "data_id": question.task_id,
            "question": question.question,
            "answer": question.answer,
            "seed": str(task.seed),
            "turns": str(limits.turns),
            "max_tokens": str(limits.max_tokens),
        },
        "metadata": {"group_id": question.task_id, "sample": task.sample},
        "config": {
            "timeout_seconds": limits.timeout_seconds,
            "local": {
                "agent_class": agent,
                "env_map": {
                    "PILOT_QUESTION": "input.question",
                    "PILOT_ANSWER": "input.answer",
                    "PILOT_SEED": "input.seed",
                    "PILOT_TURNS": "input.turns",
                    "PILOT_MAX_TOKENS": "input.max_tokens",
                },
            },
        },
    }


@dataclass(frozen=True)
class Call:
    """One model call of an episode: exact tokens, and the log-probability of each sampled one."""

    request_id: str
    policy_revision: str
    policy_version: int
    prompt: list[int]
    response: list[int]
    log_probs: list[float]
    finish_reason: str


@dataclass(frozen=True)
class Episode:
    """A rollout that ended as an episode: its calls in order and its reward."""

    task: Task
    calls: list[Call]
    reward: float


@dataclass(frozen=True)
class Failure:
    """A rollout that did not, of a kind, with its evidence."""

    task: Task
    kind: Kind
    message: str


def judge(rollout: Rollout) -> Episode | Failure:
    """What a rollout came to, from its state and events alone."""
    task = rollout.task
    told = [e["data"] for e in rollout.events if e["event_type"] == "episode_failure"]
    requests = [e["data"] for e in rollout.events if e["event_type"] == "model_request"]
    rewards = [e["data"]["value"] for e in rollout.events if e["event_type"] == "reward"]
    if any(e["rollout_id"] != task.rollout_id for e in rollout.events):
        return Failure(task, "gateway", "an event of another rollout is among its events")
    if told:
        return Failure(task, "tool" if told[0]["kind"] == "tool" else "gateway", str(told[0]["message"]))
    if any(request["status"] != "ok" for request in requests):
        return Failure(task, "gateway", "a model request failed")
    if rollout.state != "succeeded":
        return Failure(task, "worker", str(rollout.detail["rollout"]["status"]["error_message"]))
    if len(rewards) != 1 or not requests:
        return Failure(task, "worker", f"{len(rewards)} rewards and {len(requests)} model requests")
    return Episode(task, [to_call(request) for request in requests], float(rewards[0]))


def to_call(request: Json) -> Call:
    """The model call of a raw `model_request` event's data."""
    response = request["response"]
    choice = response["choices"][0]
    return Call(
        request_id=str(response["id"]),
        policy_revision=str(response["system_fingerprint"]),
        policy_version=int(request["model_version"]),
        prompt=[int(token) for token in response["prompt_token_ids"]],
        response=[int(token) for token in choice["token_ids"]],
        log_probs=[float(item["logprob"]) for item in choice["logprobs"]["content"]],
        finish_reason=str(choice["finish_reason"]),
    )
