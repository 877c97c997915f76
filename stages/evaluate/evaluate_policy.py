"""Evaluates one policy on the held-out questions, through the same gateway and with the same budgets as training:
`python evaluate_policy.py --params FILE --policy DIR --questions DIR --upstream DIR --out DIR`.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pilot_rl.gateway import open_gateway
from pilot_rl.params import read_params
from pilot_rl.policy import load_policy
from pilot_rl.process import adopt_orphans, exit_on_signals
from pilot_rl.questions import Question, from_json
from pilot_rl.records import Json, describe_environment, describe_sources, read_json, sum_by, write_json, write_lines
from pilot_rl.rollouts import FAILURE_KINDS, Episode, Limits, Rollout, Task, judge, run_rollouts
from pilot_rl.sampler import Sampler


@dataclass(frozen=True)
class Params:
    """What both policies get alike."""

    seed: int
    samples: int
    workers: int
    turns: int
    max_tokens: int
    timeout_seconds: int


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("params", "policy", "questions", "upstream", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    args = parser.parse_args()
    params = read_params(args.params, Params)
    adopt_orphans()
    exit_on_signals()
    out: Path = args.out
    out.mkdir(parents=True, exist_ok=True)
    policy = load_policy(args.policy)
    held_out = [from_json(row) for row in read_json(args.questions / "held_out.json")]
    limits = Limits(params.turns, params.max_tokens, params.timeout_seconds)
    began = time.monotonic()
    sampler = Sampler(policy, "policy", out / "sampler.jsonl")
    try:
        with open_gateway(out / "gateway", endpoint=sampler.endpoint, version=0, workers=params.workers) as gateway:
            rollouts = run_rollouts(gateway, to_tasks(held_out, params), limits, is_train=False, say=print)
    finally:
        sampler.close()
    results = [to_result(rollout) for rollout in rollouts]
    write_lines(out / "events.jsonl", (event for rollout in rollouts for event in rollout.events))
    write_lines(out / "rollouts.jsonl", (rollout.detail for rollout in rollouts))
    write_lines(out / "results.jsonl", results)
    scored = [row for row in results if row["kind"] is None]
    write_json(
        out / "run.json",
        {
            "policy_revision": policy.revision,
            "params": asdict(params),
            "sources": describe_sources(args.upstream, Path(__file__).parent),
            "environment": describe_environment(),
            "failures": sum_by((row for row in results if row["kind"]), "kind", FAILURE_KINDS),
            "seconds": round(time.monotonic() - began, 3),
            "peak_memory_bytes": peak_memory_bytes(),
            "prompt_tokens": sum(row["prompt_tokens"] for row in results),
            "sampled_tokens": sum(row["sampled_tokens"] for row in results),
        },
    )
    mean = sum(row["reward"] for row in scored) / len(scored) if scored else float("nan")
    print(f"policy {policy.revision[:12]}: {mean:.3f} right of {len(scored)}, {len(results) - len(scored)} failed")


def to_tasks(questions: Sequence[Question], params: Params) -> list[Task]:
    """Each question as often as asked; the seeds are of question and sample alone, so both policies get the same."""
    return [
        Task(f"eval-{question.task_id}-{sample}", question, sample, seed=params.seed * 1_000 + sample)
        for question in questions
        for sample in range(params.samples)
    ]


def to_result(rollout: Rollout) -> Json:
    """One row: a reward, or the kind of failure and no reward."""
    task, item = rollout.task, judge(rollout)
    calls = item.calls if isinstance(item, Episode) else []
    return {
        "task_id": task.question.task_id,
        "question": task.question.question,
        "sample": task.sample,
        "seed": task.seed,
        "reward": item.reward if isinstance(item, Episode) else None,
        "kind": None if isinstance(item, Episode) else item.kind,
        "message": None if isinstance(item, Episode) else item.message,
        "turns": len(calls),
        "prompt_tokens": sum(len(call.prompt) for call in calls),
        "sampled_tokens": sum(len(call.response) for call in calls),
    }


def peak_memory_bytes() -> int:
    """Largest resident memory of this process or of one of those it started and waited for."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    # Linux counts in KiB.
    return max(resource.getrusage(kind).ru_maxrss for kind in kinds) * 1024


if __name__ == "__main__":
    main()
