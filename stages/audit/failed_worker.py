"""Kills a worker after its first model call and shows what becomes of it:
`python failed_worker.py --params FILE --policy DIR --questions DIR --work DIR --out FILE`.

It must end in a terminal state in time, be a diagnostic, have no scored and no trained row, leave the others alone and
no process or port behind; a replacement has an id of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pilot_rl.gateway import open_gateway
from pilot_rl.params import read_params
from pilot_rl.policy import Policy, load_policy
from pilot_rl.process import adopt_orphans, exit_on_signals
from pilot_rl.questions import Question, from_json
from pilot_rl.records import Json, read_json, write_json
from pilot_rl.rollouts import Episode, Failure, Limits, Rollout, Task, judge, run_rollouts
from pilot_rl.sampler import Sampler, sample
from pilot_rl.tokenizer import parse_tool_call, render

SOURCE = "captured"
HOLD_SECONDS = 60.0


@dataclass(frozen=True)
class Params:
    """Rollouts of the experiment."""

    seed: int
    workers: int
    turns: int
    max_tokens: int
    timeout_seconds: int
    terminal_seconds: float


@dataclass
class HoldingSampler(Sampler):
    """Holds the answer to one call back until told to go on: the one of a question, seed and turn."""

    hold: tuple[str, str, int] = ("", "", 0)
    arrived: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def answer(self, body: Any) -> Json:
        """As the sampler, later where it is the call to be held."""
        messages = body["messages"]
        turn = sum(message["role"] == "assistant" for message in messages)
        if (messages[0]["content"], str(body["seed"]), turn) == self.hold:
            self.arrived.set()
            self.go.wait(HOLD_SECONDS)
        return super().answer(body)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("params", "policy", "questions", "work", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    args = parser.parse_args()
    params = read_params(args.params, Params)
    adopt_orphans()
    exit_on_signals()
    args.work.mkdir(parents=True)
    policy = load_policy(args.policy)
    train = [from_json(row) for row in read_json(args.questions / "train.json")]
    victim = find_victim(policy, train, params)
    other = next(question for question in train if question != victim.question)
    tasks = [
        victim,
        Task("bystander-same-group", victim.question, 1, victim.seed + 1),
        Task("bystander-other-group", other, 0, params.seed),
    ]
    report = experiment(policy, tasks, params, args.work)
    write_json(args.out, report)
    print(report["summary"])


def find_victim(policy: Policy, questions: Sequence[Question], params: Params) -> Task:
    """A task whose first turn is a tool call, so that there is a second call to be killed in. Noise is keyed, so what
    is sampled here is what its worker will be told."""
    for seed in range(params.seed, params.seed + 100):
        for question in questions:
            prompt = render([{"role": "user", "content": question.question}])
            first = sample(
                policy, prompt, question=question.question, seed=seed, turn=0, temperature=1.0, limit=params.max_tokens
            )
            if parse_tool_call(first.tokens) is not None:
                return Task("victim", question, 0, seed)
    raise SystemExit("the policy calls no tool in 100 samples of each question")


def experiment(policy: Policy, tasks: Sequence[Task], params: Params, work: Path) -> Json:
    """Runs it, and says what was seen."""
    limits = Limits(params.turns, params.max_tokens, params.timeout_seconds)
    victim = tasks[0]
    sampler = HoldingSampler(
        policy, "policy", work / "sampler.jsonl", hold=(victim.question.question, str(victim.seed), 1)
    )
    killed: Json = {}
    try:
        with open_gateway(work / "gateway", endpoint=sampler.endpoint, version=0, workers=params.workers) as gateway:
            mark, url = gateway.mark, gateway.url
            with killing(sampler, f"rollout/{victim.rollout_id}/", killed):
                rollouts = run_rollouts(gateway, tasks, limits, is_train=True, say=print)
            ended = time.monotonic()
            second = replace(victim, rollout_id=f"{victim.rollout_id}-replacement")
            (replaced,) = run_rollouts(gateway, [second], limits, is_train=True, say=print)
    finally:
        sampler.go.set()
        sampler.close()
    seconds = ended - killed["at"] if "at" in killed else float("inf")
    return judge_experiment(rollouts, replaced, seconds, params) | {
        "processes_left": processes_with(mark),
        "port_held": is_listening(url),
        "params": asdict(params),
    }


@contextlib.contextmanager
def killing(sampler: HoldingSampler, mark: str, killed: Json) -> Iterator[None]:
    """While the block runs, waits for the call that is held and kills the worker that made it."""

    def kill() -> None:
        if not sampler.arrived.wait(HOLD_SECONDS):
            return
        for pid in processes_with(mark):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed["at"] = time.monotonic()
        sampler.go.set()

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        sampler.arrived.set()
        thread.join()


def judge_experiment(rollouts: Sequence[Rollout], replaced: Rollout, seconds: float, params: Params) -> Json:
    """What became of victim, bystanders and replacement, from the gateway's record."""
    victim, *bystanders = [judge(rollout) for rollout in rollouts]
    again = judge(replaced)
    calls = sum(event["event_type"] == "model_request" for event in rollouts[0].events)
    rewards = sum(event["event_type"] == "reward" for event in rollouts[0].events)
    scored = [item.task.rollout_id for item in [victim, *bystanders, again] if isinstance(item, Episode)]
    facts = {
        "model_calls_before": calls,
        "terminal_state": rollouts[0].state,
        "terminal_after_seconds": round(seconds, 3),
        "diagnostic": asdict(victim)["message"] if isinstance(victim, Failure) else None,
        "kind": victim.kind if isinstance(victim, Failure) else None,
        "rewards": rewards,
        "scored": scored,
        "bystanders_unaffected": all(isinstance(item, Episode) for item in bystanders),
        "replacement": replaced.task.rollout_id if isinstance(again, Episode) else None,
    }
    return {
        "summary": (
            f"worker killed after {calls} model calls: {rollouts[0].state} in {seconds:.1f} s, "
            f"{'diagnostic' if isinstance(victim, Failure) else 'scored'}, {len(bystanders)} others "
            f"{'unaffected' if facts['bystanders_unaffected'] else 'affected'}"
        ),
        "source": SOURCE,
        "victim": rollouts[0].task.rollout_id,
        **facts,
        "in_time": seconds <= params.terminal_seconds,
    }


def processes_with(text: str) -> list[int]:
    """Processes with this text in their environment, this one apart (Linux)."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(folder.name) != os.getpid() and text.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def is_listening(url: str) -> bool:
    """Whether something still answers at the address."""
    address = urlsplit(url)
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((str(address.hostname), int(address.port or 0))) == 0


if __name__ == "__main__":
    main()
