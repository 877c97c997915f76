"""Takes one PPO step through the real gateway:
`python ppo_step.py --params FILE --base DIR --questions DIR --upstream DIR --out DIR --record DIR
--metrics FILE`.

The record holds what happened (raw events, states, the sampler's own log, the rows trained on, the configuration);
the checkpoint in --out holds what came of it, and is a function of base, questions and parameters alone.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import ppo
from training_rows import Row, to_batch, to_json, to_row

from pilot_rl.gateway import open_gateway
from pilot_rl.params import read_params
from pilot_rl.policy import Policy, load_policy, logits_of, probe_tokens, save_policy
from pilot_rl.process import adopt_orphans, exit_on_signals
from pilot_rl.questions import Question, from_json
from pilot_rl.records import (
    Json,
    describe_environment,
    describe_sources,
    read_json,
    sha256,
    sum_by,
    write_json,
    write_lines,
)
from pilot_rl.rollouts import FAILURE_KINDS, Episode, Failure, Limits, Rollout, Task, judge, run_rollouts
from pilot_rl.sampler import Sampler

SOURCE = "captured"
"""What is recorded here went through the real gateway. Fixtures say so of themselves."""

VERSION = 0
"""Policy version of the behaviour policy; the updated one is the next."""


@dataclass(frozen=True)
class Params:
    """Rollouts (groups of samples of one question), their budget, and the update."""

    seed: int
    groups: int
    samples: int
    workers: int
    turns: int
    max_tokens: int
    timeout_seconds: int
    epochs: int
    learning_rate: float
    clip: float
    kl_weight: float
    min_groups: int
    #: Which of several runs with the same parameters this is: makes the same update again, and changes nothing in it.
    repetition: int


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("params", "base", "questions", "upstream", "out", "record", "metrics"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    args = parser.parse_args()
    params = read_params(args.params, Params)
    adopt_orphans()
    exit_on_signals()
    record: Path = args.record
    record.mkdir(parents=True, exist_ok=True)
    write_json(record / "config.json", asdict(params))
    write_json(record / "environment.json", describe_environment())
    write_json(record / "sources.json", describe_sources(args.upstream, Path(__file__).parent))
    write_json(record / "status.json", {"status": "running", "source": SOURCE})

    base = load_policy(args.base)
    train = [from_json(row) for row in read_json(args.questions / "train.json")]
    tasks = choose_tasks(train, params)
    rollouts = capture(base, tasks, params, record)
    judged = [judge(rollout) for rollout in rollouts]
    rows = complete_groups([to_row(item) for item in judged if isinstance(item, Episode)], params.samples)
    failures = [item for item in judged if isinstance(item, Failure)]
    save_record(record, rollouts, rows, failures)
    groups = {row.episode.task.question.task_id for row in rows}
    if len(groups) < params.min_groups:
        raise SystemExit(
            f"only {len(groups)} of {params.groups} groups are complete, {params.min_groups} are needed; "
            f"failures by kind: {dict(Counter(failure.kind for failure in failures))}, each in diagnostics.jsonl"
        )
    require_one_policy(rows, base.revision)
    metrics = train_once(base, rows, params, args.out, record)
    metrics |= {
        "groups": len(groups),
        "rows": len(rows),
        "failures": sum_by(map(asdict, failures), "kind", FAILURE_KINDS),
    }
    write_json(args.metrics, metrics)
    write_json(record / "status.json", {"status": "succeeded", "source": SOURCE})
    print(metrics["summary"])


def choose_tasks(train: Sequence[Question], params: Params) -> list[Task]:
    """Groups of samples of one question each; questions drawn without repetition."""
    chosen = random.Random(params.seed).sample(list(train), params.groups)
    return [
        Task(f"train-{question.task_id}-{sample}", question, sample, seed=params.seed * 1_000 + sample)
        for question in chosen
        for sample in range(params.samples)
    ]


def capture(base: Policy, tasks: Sequence[Task], params: Params, record: Path) -> list[Rollout]:
    """All rollouts through the gateway, and the sampler's own log beside them."""
    limits = Limits(params.turns, params.max_tokens, params.timeout_seconds)
    sampler = Sampler(base, "policy", record / "sampler.jsonl")
    try:
        with open_gateway(
            record / "gateway", endpoint=sampler.endpoint, version=VERSION, workers=params.workers
        ) as gateway:
            return run_rollouts(gateway, tasks, limits, is_train=True, say=print)
    finally:
        sampler.close()


def complete_groups(rows: Sequence[Row], samples: int) -> list[Row]:
    """Rows of the groups of which every sample is an episode: a group with a hole has another mean."""
    counts = Counter(row.episode.task.question.task_id for row in rows)
    return [row for row in rows if counts[row.episode.task.question.task_id] == samples]


def require_one_policy(rows: Sequence[Row], revision: str) -> None:
    """Raises SystemExit where a row was not sampled, call by call, by the policy that is trained."""
    for row in rows:
        for call in row.episode.calls:
            if (call.policy_revision, call.policy_version) != (revision, VERSION):
                raise SystemExit(
                    f"rollout {row.episode.task.rollout_id} was sampled by policy {call.policy_revision[:12]} version "
                    f"{call.policy_version}, not by {revision[:12]} version {VERSION}"
                )


def train_once(base: Policy, rows: list[Row], params: Params, out: Path, record: Path) -> Json:
    """The update, its checkpoint, and the probe that a reload must answer bit for bit."""
    began = time.monotonic()
    batch = to_batch(rows, base.config.context)
    weights, history = ppo.update(
        base.config,
        base.params,
        batch,
        epochs=params.epochs,
        learning_rate=params.learning_rate,
        clip=params.clip,
        kl_weight=params.kl_weight,
    )
    revision = save_policy(out, base.config, weights)
    probe = logits_of(base.config, weights, probe_tokens(base.config))
    write_json(record / "probe.json", {"policy_revision": revision, "logits_sha256": sha256(probe.tobytes())})
    write_json(record / "update.json", {"epochs": history, "advantages": batch.advantages.tolist()})
    reward = sum(row.episode.reward for row in rows) / len(rows)
    last = history[-1]
    return {
        "summary": (
            f"one PPO step on {len(rows)} episodes: reward {reward:.3f}, KL to baseline {last['kl_to_baseline']:.2e}, "
            f"policy {base.revision[:12]} -> {revision[:12]}"
        ),
        "behaviour_revision": base.revision,
        "policy_revision": revision,
        "policy_version": VERSION + 1,
        "reward": reward,
        "trained_tokens": int(batch.mask.sum()),
        "informative_rows": int((batch.advantages != 0).sum()),
        "max_kl_to_baseline": max(epoch["max_kl_to_baseline"] for epoch in history),
        "epochs": history,
        "update_seconds": round(time.monotonic() - began, 3),
    }


def save_record(record: Path, rollouts: Sequence[Rollout], rows: Sequence[Row], failures: Sequence[Failure]) -> None:
    """Everything raw, before the gateway's memory is the only place that had it."""
    write_lines(record / "events.jsonl", (event for rollout in rollouts for event in rollout.events))
    write_lines(record / "rollouts.jsonl", (rollout.detail for rollout in rollouts))
    write_lines(record / "rows.jsonl", (to_json(row) for row in rows))
    write_lines(
        record / "diagnostics.jsonl",
        (
            {
                "rollout_id": failure.task.rollout_id,
                "group_id": failure.task.question.task_id,
                "kind": failure.kind,
                "message": failure.message,
            }
            for failure in failures
        ),
    )


if __name__ == "__main__":
    main()
