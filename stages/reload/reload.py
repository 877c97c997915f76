"""Loads the checkpoint in a fresh process and holds it, and every captured token, against the record:
`python reload.py --checkpoint DIR --base DIR --record DIR --out FILE`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from pilot_rl.policy import Policy, load_policy, logits_of, probe_tokens
from pilot_rl.records import Json, read_json, read_lines, sha256, write_json
from pilot_rl.rollouts import to_call


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("checkpoint", "base", "record", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    args = parser.parse_args()
    adapted = load_policy(args.checkpoint)
    expected = read_json(args.record / "probe.json")
    if adapted.revision != expected["policy_revision"]:
        raise SystemExit(f"the checkpoint is {adapted.revision}, the record is of {expected['policy_revision']}")
    got = sha256(np.asarray(logits_of(adapted.config, adapted.params, probe_tokens(adapted.config))).tobytes())
    if got != expected["logits_sha256"]:
        raise SystemExit(
            f"logits on the probe differ after the reload: sha256 {got}, before {expected['logits_sha256']}"
        )
    rescored = rescore(load_policy(args.base), args.record)
    summary = (
        f"reloaded {adapted.revision[:12]}: logits bitwise equal, {rescored['tokens']} captured tokens scored again, "
        f"largest |d logprob| {rescored['largest_difference']:.2e}"
    )
    write_json(args.out, {"summary": summary, "policy_revision": adapted.revision, "probe": expected, **rescored})
    print(summary)


def rescore(behaviour: Policy, record: Path) -> Json:
    """Every captured token under the behaviour checkpoint, by the path it was sampled by. Raises SystemExit where a
    call was sampled by another policy."""
    tokens, largest, calls = 0, 0.0, 0
    for event in read_lines(record / "events.jsonl"):
        if event["event_type"] != "model_request" or event["data"]["status"] != "ok":
            continue
        call = to_call(event["data"])
        if call.policy_revision != behaviour.revision:
            raise SystemExit(
                f"call {call.request_id} was sampled by {call.policy_revision}, not by {behaviour.revision}"
            )
        calls += 1
        for i, token in enumerate(call.response):
            context = call.prompt + call.response[:i]
            again = float(behaviour.score_one(context)[len(context) - 1][token])
            largest = max(largest, abs(again - call.log_probs[i]))
            tokens += 1
    return {"calls": calls, "tokens": tokens, "largest_difference": largest}


if __name__ == "__main__":
    main()
