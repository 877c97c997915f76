"""Makes the frozen baseline: `python base.py --params FILE --out DIR --questions DIR --report FILE`."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from warm_start import warm_start

from pilot_rl.params import read_params
from pilot_rl.policy import Config, save_policy
from pilot_rl.questions import shared_questions, split_questions, to_json
from pilot_rl.records import describe_environment, write_json


@dataclass(frozen=True)
class Params:
    """Sizes of the sets, shape of the policy, and how long it is warmed up."""

    seed: int
    train: int
    held_out: int
    retention: int
    context: int
    width: int
    layers: int
    heads: int
    steps: int
    batch: int
    learning_rate: float


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("params", "out", "questions", "report"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    args = parser.parse_args()
    params = read_params(args.params, Params)
    sets = split_questions(params.seed, params.train, params.held_out, params.retention)
    for other in ("held_out", "retention"):
        shared = shared_questions(sets["train"], sets[other])
        if shared:
            raise ValueError(f"questions both in train and in {other}: {', '.join(shared)}")
    for name, questions in sets.items():
        write_json(args.questions / f"{name}.json", [to_json(question) for question in questions])
    config = Config(params.context, params.width, params.layers, params.heads)
    began = time.monotonic()
    weights, losses = warm_start(
        config,
        sets["train"],
        steps=params.steps,
        batch=params.batch,
        learning_rate=params.learning_rate,
        seed=params.seed,
        say=print,
    )
    revision = save_policy(args.out, config, weights)
    count = sum(int(value.size) for value in weights.values())
    write_json(
        args.report,
        {
            "summary": f"baseline {revision[:12]}: {count} parameters, warm start loss {losses[-1]:.4f}",
            "policy_revision": revision,
            "parameters": count,
            "params": asdict(params),
            "losses": losses,
            "questions": {name: len(questions) for name, questions in sets.items()},
            "environment": describe_environment(),
        },
    )
    print(f"baseline {revision[:12]}, {count} parameters, in {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
