"""Rollouts through the real gateway and controller, with a worker that is killed in the middle of one."""

import os
import signal
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from ppo_step import complete_groups
from training_rows import to_row

from pilot_rl.gateway import open_gateway
from pilot_rl.policy import Config, Policy, init_params
from pilot_rl.questions import make_question
from pilot_rl.records import read_lines
from pilot_rl.rollouts import Episode, Failure, Limits, Task, judge, run_rollouts
from pilot_rl.sampler import Sampler

CONFIG = Config(context=64, width=16, layers=1, heads=2)
POLICY = Policy(CONFIG, init_params(CONFIG, 1), "fixture-revision")
LIMITS = Limits(turns=3, max_tokens=4, timeout_seconds=30)


@dataclass
class HoldingSampler(Sampler):
    """Holds every answer back until told to go on."""

    arrived: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def answer(self, body: Any) -> Any:
        self.arrived.set()
        self.go.wait(60)
        return super().answer(body)


def processes_with(text: str) -> list[int]:
    """Processes of ours with this text in their environment, this one apart."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "environ").read_bytes() and int(folder.name) != os.getpid():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def test_a_killed_worker_is_a_diagnostic_and_never_a_reward(tmp_path: Path) -> None:
    tasks = [Task(f"kill-{i}", make_question(text), 0, i) for i, text in enumerate(["1+2", "3*4", "5-6"])]
    sampler = HoldingSampler(POLICY, "policy", tmp_path / "sampler.jsonl")
    victim = "rollout/kill-0/"

    def kill() -> None:
        sampler.arrived.wait(60)
        while not (workers := processes_with(victim)):
            pass
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        sampler.go.set()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with open_gateway(tmp_path / "gateway", endpoint=sampler.endpoint, version=0, workers=1) as gateway:
            mark = gateway.mark
            rollouts = run_rollouts(gateway, tasks, LIMITS, is_train=True, say=print)
    finally:
        sampler.go.set()
        killer.join()
        sampler.close()
    killed, *others = [judge(rollout) for rollout in rollouts]

    assert isinstance(killed, Failure)
    assert killed.kind == "worker"
    assert all(isinstance(item, Episode) for item in others)
    rows = [to_row(item) for item in others if isinstance(item, Episode)]
    assert "kill-0" not in {row.episode.task.rollout_id for row in complete_groups(rows, 1)}
    assert processes_with(mark) == []


def test_what_the_gateway_captured_is_what_the_sampler_sampled(tmp_path: Path) -> None:
    tasks = [Task(f"join-{i}", make_question("7*8"), i, i) for i in range(2)]
    sampler = Sampler(POLICY, "policy", tmp_path / "sampler.jsonl")
    try:
        with open_gateway(tmp_path / "gateway", endpoint=sampler.endpoint, version=4, workers=2) as gateway:
            rollouts = run_rollouts(gateway, tasks, LIMITS, is_train=True, say=print)
    finally:
        sampler.close()
    judged = [judge(rollout) for rollout in rollouts]
    own = {row["request_id"]: row for row in read_lines(tmp_path / "sampler.jsonl")}

    calls = [call for item in judged if isinstance(item, Episode) for call in item.calls]
    assert len(calls) == len(own) >= 2
    for call in calls:
        assert call.prompt == own[call.request_id]["prompt_token_ids"]
        assert call.response == own[call.request_id]["response_token_ids"]
        assert call.log_probs == pytest.approx(own[call.request_id]["logprobs"], abs=0)
        assert (call.policy_revision, call.policy_version) == ("fixture-revision", 4)


def test_a_policy_that_does_not_answer_is_a_gateway_failure(tmp_path: Path) -> None:
    limits = Limits(turns=1, max_tokens=4, timeout_seconds=60)
    with open_gateway(tmp_path / "gateway", endpoint="http://127.0.0.1:9/v1", version=0, workers=1) as gateway:
        (rollout,) = run_rollouts(gateway, [Task("down", make_question("1+1"), 0, 0)], limits, is_train=True, say=print)

    failed = judge(rollout)

    assert isinstance(failed, Failure)
    assert failed.kind == "gateway"
