"""Compares two evaluations of the same tasks:
`python evaluate.py --params FILE --baseline DIR --adapted DIR --questions DIR --reload FILE --out FILE`.

The difference is taken question by question and its interval by resampling questions: samples of one question are
not independent. "No measurable change" is a verdict like the others. A failed rollout is counted apart and is in
no mean.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from pilot_rl.params import read_params
from pilot_rl.questions import from_json, shared_questions
from pilot_rl.records import Json, read_json, read_lines, write_json

MATCHED = ("task_id", "question", "sample", "seed")


@dataclass(frozen=True)
class Params:
    """Of the bootstrap."""

    seed: int
    resamples: int
    confidence: float


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("params", "baseline", "adapted", "questions", "reload", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    args = parser.parse_args()
    params = read_params(args.params, Params)
    require_disjoint(args.questions)
    runs = {side: read_json(getattr(args, side) / "run.json") for side in ("baseline", "adapted")}
    if runs["baseline"]["params"] != runs["adapted"]["params"]:
        raise SystemExit("baseline and adapted were evaluated with different budgets")
    reload = read_json(args.reload)
    if reload["policy_revision"] != runs["adapted"]["policy_revision"]:
        raise SystemExit(f"reloaded was {reload['policy_revision']}, evaluated {runs['adapted']['policy_revision']}")
    rows = {side: list(read_lines(getattr(args, side) / "results.jsonl")) for side in ("baseline", "adapted")}
    comparison = compare(rows["baseline"], rows["adapted"], params)
    verdict = {
        "summary": summarise(comparison),
        **comparison,
        "params": asdict(params),
        "evaluation": runs["baseline"]["params"],
        "policies": {side: run["policy_revision"] for side, run in runs.items()},
        "reload": reload["summary"],
        "failures": {side: run["failures"] for side, run in runs.items()},
        "measured": {
            side: {name: run[name] for name in ("seconds", "peak_memory_bytes", "prompt_tokens", "sampled_tokens")}
            for side, run in runs.items()
        },
    }
    write_json(args.out, verdict)
    print(verdict["summary"])


def require_disjoint(folder: Path) -> None:
    """Raises SystemExit where a held-out question is a training question, by id or by content."""
    train = [from_json(row) for row in read_json(folder / "train.json")]
    held_out = [from_json(row) for row in read_json(folder / "held_out.json")]
    shared = shared_questions(train, held_out)
    if shared:
        raise SystemExit(f"held-out questions were trained on: {', '.join(shared)}")


def compare(baseline: Sequence[Json], adapted: Sequence[Json], params: Params) -> Json:
    """Paired differences and their interval. Raises SystemExit where tasks differ, or none is scored in both."""
    if [[row[name] for name in MATCHED] for row in baseline] != [[row[name] for name in MATCHED] for row in adapted]:
        raise SystemExit("baseline and adapted were not evaluated on the same tasks, samples and seeds")
    pairs: dict[str, list[tuple[float, float]]] = {}
    for before, after in zip(baseline, adapted, strict=True):
        if before["reward"] is not None and after["reward"] is not None:
            pairs.setdefault(before["task_id"], []).append((before["reward"], after["reward"]))
    if not pairs:
        raise SystemExit("no task was scored in both evaluations")
    sums = np.array([[sum(a - b for b, a in group), len(group)] for group in pairs.values()])
    difference = float(sums[:, 0].sum() / sums[:, 1].sum())
    low, high = interval(sums, params)
    return {
        "verdict": "improved" if low > 0 else "worse" if high < 0 else "no measurable change",
        "difference": difference,
        "interval": [low, high],
        "confidence": params.confidence,
        "baseline": float(np.mean([b for group in pairs.values() for b, _ in group])),
        "adapted": float(np.mean([a for group in pairs.values() for _, a in group])),
        "questions": len(pairs),
        "pairs": int(sums[:, 1].sum()),
        "unpaired": len(baseline) - int(sums[:, 1].sum()),
        "by_question": [
            {
                "task_id": task,
                "baseline": float(np.mean([b for b, _ in group])),
                "adapted": float(np.mean([a for _, a in group])),
            }
            for task, group in sorted(pairs.items())
        ],
    }


def interval(sums: np.ndarray, params: Params) -> tuple[float, float]:
    """Percentile bootstrap of the mean difference; `sums` is [questions, (sum of differences, pairs)]."""
    rng = np.random.default_rng(params.seed)
    drawn = sums[rng.integers(0, len(sums), (params.resamples, len(sums)))].sum(axis=1)
    tail = (1 - params.confidence) / 2
    low, high = np.quantile(drawn[:, 0] / drawn[:, 1], [tail, 1 - tail])
    return float(low), float(high)


def summarise(comparison: Json) -> str:
    """The verdict in one line."""
    low, high = comparison["interval"]
    return (
        f"{comparison['verdict']}: held-out reward {comparison['baseline']:.3f} -> {comparison['adapted']:.3f}, "
        f"difference {comparison['difference']:+.3f} [{low:+.3f}, {high:+.3f}] "
        f"({comparison['confidence']:.0%}, {comparison['questions']} questions, {comparison['pairs']} pairs)"
    )


if __name__ == "__main__":
    main()
