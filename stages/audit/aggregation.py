"""The same episodes at both levels, transition and trajectory, on a harness that rewrites its context:
`python aggregation.py --params FILE --policy DIR --questions DIR --trainer DIR --work DIR --out FILE`.

A trajectory goes on while each prompt extends what was there before, and ends where it does not. Joining across such
a break would train tokens on a context they were not sampled in.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

from pilot_rl.gateway import open_gateway
from pilot_rl.params import read_params
from pilot_rl.policy import load_policy
from pilot_rl.process import adopt_orphans, exit_on_signals
from pilot_rl.questions import from_json
from pilot_rl.records import Json, read_json, write_json
from pilot_rl.rollouts import Call, Episode, Limits, Task, judge, run_rollouts
from pilot_rl.sampler import Sampler


@dataclass(frozen=True)
class Params:
    """Rollouts of the experiment."""

    seed: int
    episodes: int
    workers: int
    turns: int
    max_tokens: int
    timeout_seconds: int


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("params", "policy", "questions", "trainer", "work", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    args = parser.parse_args()
    params = read_params(args.params, Params)
    sys.path.insert(0, str(args.trainer))
    # The controller's workers find the harness of this folder by it.
    os.environ["PYTHONPATH"] = os.pathsep.join([os.environ["PYTHONPATH"], str(Path(__file__).resolve().parent)])
    adopt_orphans()
    exit_on_signals()
    args.work.mkdir(parents=True)
    policy = load_policy(args.policy)
    # Two operations: what takes a tool call, and so a rewritten context.
    train = [
        question for question in map(from_json, read_json(args.questions / "train.json")) if len(question.question) > 3
    ]
    tasks = [Task(f"rewrite-{i}", question, 0, params.seed + i) for i, question in enumerate(train[: params.episodes])]
    limits = Limits(params.turns, params.max_tokens, params.timeout_seconds)
    sampler = Sampler(policy, "policy", args.work / "sampler.jsonl")
    try:
        with open_gateway(
            args.work / "gateway", endpoint=sampler.endpoint, version=0, workers=params.workers
        ) as gateway:
            rollouts = run_rollouts(gateway, tasks, limits, is_train=True, say=print, agent="rewriting:Agent")
    finally:
        sampler.close()
    episodes = [item for item in map(judge, rollouts) if isinstance(item, Episode)]
    sampled = sum(len(call["response_token_ids"]) for call in sampler.calls)
    report = {**compare_levels(episodes, sampled), "params": asdict(params), "failed": len(rollouts) - len(episodes)}
    write_json(args.out, report)
    print(report["summary"])


def compare_levels(episodes: Sequence[Episode], sampled: int) -> Json:
    """Rows and trainable tokens at both levels, out of the trainer's own rows."""
    # The trainer is an input of this stage: it is wherever that stands.
    import ppo
    from training_rows import to_row

    faults: list[str] = []
    rows = transitions = trajectory_tokens = transition_tokens = breaks = 0
    for episode in episodes:
        parts = split(episode.calls)
        expected = 1 + count_breaks(episode.calls)
        breaks += expected - 1
        rows += len(parts)
        transitions += len(episode.calls)
        trajectory_tokens += sum(sum(to_row(replace(episode, calls=part)).mask) for part in parts)
        transition_tokens += sum(sum(to_row(replace(episode, calls=[call])).mask) for call in episode.calls)
        if len(parts) != expected:
            faults.append(f"{episode.task.rollout_id}: {len(parts)} rows for {expected - 1} breaks")
        if len(parts) > 1 and not is_refused(episode, to_row):
            faults.append(f"{episode.task.rollout_id}: the trainer joined calls across a rewritten context")
    if not trajectory_tokens == transition_tokens == sampled:
        faults.append(
            f"trainable tokens: {trajectory_tokens} by trajectory, {transition_tokens} by transition, {sampled} sampled"
        )
    if breaks == 0:
        faults.append("no context was rewritten: nothing was compared")
    return {
        "summary": f"{len(episodes)} episodes with {breaks} breaks: {rows} trajectory rows, {transitions} transitions, "
        f"{trajectory_tokens} trainable tokens at both levels" + (f"; faults: {'; '.join(faults)}" if faults else ""),
        "source": "captured",
        "faults": faults,
        "episodes": len(episodes),
        "breaks": breaks,
        "trajectory_rows": rows,
        "transition_rows": transitions,
        "trainable_tokens": {"trajectory": trajectory_tokens, "transition": transition_tokens, "sampled": sampled},
        "settings": {"loss": ppo.LOSS_NORMALISATION, "advantage": ppo.ADVANTAGE},
    }


def is_refused(episode: Episode, to_row: object) -> bool:
    """Whether the trainer refuses to make one row of all calls."""
    try:
        to_row(episode)  # type: ignore[operator]
    except ValueError:
        return True
    return False


def count_breaks(calls: Sequence[Call]) -> int:
    """Pairs of calls of which the second does not go on from the first."""
    return sum(b.prompt[: len(a.prompt) + len(a.response)] != a.prompt + a.response for a, b in pairwise(calls))


def split(calls: Sequence[Call]) -> list[list[Call]]:
    """Runs of calls that extend each other."""
    parts: list[list[Call]] = []
    for call in calls:
        before = parts[-1][-1] if parts else None
        if before and call.prompt[: len(before.prompt) + len(before.response)] == before.prompt + before.response:
            parts[-1].append(call)
        else:
            parts.append([call])
    return parts


if __name__ == "__main__":
    main()
