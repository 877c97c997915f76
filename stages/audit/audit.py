"""Audits what an update was made from, out of the raw record and not from what the trainer says of itself:
`python audit.py --params FILE --record DIR --behaviour DIR --questions DIR --trainer DIR --out FILE`.

Three sections, each on its own: exact tokens, exclusion of tool tokens from the loss, identity of policy and group.
A section that fails says what it found; the program itself ends with 0, for `accept` is who judges.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from pilot_rl.params import read_params
from pilot_rl.policy import Policy, load_policy
from pilot_rl.questions import Question, from_json
from pilot_rl.records import Json, read_json, read_lines, write_json
from pilot_rl.rollouts import Call, Episode, Task, to_call
from pilot_rl.tokenizer import END, SPECIALS, render

MAX_FAULTS = 10


@dataclass(frozen=True)
class Params:
    """Largest differences of log-probabilities: rescored against captured, and gateway against sampler."""

    rescore_tolerance: float
    join_tolerance: float


@dataclass(frozen=True)
class Record:
    """The raw record of a step, by rollout id."""

    calls: dict[str, list[Call]]
    requests: dict[str, list[Json]]
    sampler: dict[str, Json]
    rollouts: dict[str, Json]
    rows: list[Json]
    diagnostics: list[Json]
    source: str


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("params", "record", "behaviour", "questions", "trainer", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    args = parser.parse_args()
    params = read_params(args.params, Params)
    sys.path.insert(0, str(args.trainer))
    record = read_record(args.record)
    behaviour = load_policy(args.behaviour)
    held_out = [from_json(row) for row in read_json(args.questions / "held_out.json")]
    sections = {
        "exact_token": guarded(lambda: audit_tokens(record, behaviour, params)),
        "tool_loss": guarded(lambda: audit_tool_loss(record, behaviour)),
        "identity": guarded(lambda: audit_identity(record, behaviour, held_out)),
    }
    failed = [name for name, section in sections.items() if section["faults"]]
    summary = f"audit of {len(record.rows)} rows: " + (f"faults in {', '.join(failed)}" if failed else "no fault")
    write_json(args.out, {"summary": summary, "source": record.source, "params": asdict(params), **sections})
    print(summary)
    for name in failed:
        for fault in sections[name]["faults"]:
            print(f"  {name}: {fault}")


def guarded(section: Callable[[], Json]) -> Json:
    """A section that cannot even be worked out is a fault of that section, and of no other."""
    try:
        found = section()
    except (KeyError, TypeError, ValueError, IndexError) as error:
        return {"faults": [f"the record cannot be read: {type(error).__name__}: {error}"]}
    return {**found, "faults": found["faults"][:MAX_FAULTS]}


def read_record(folder: Path) -> Record:
    """Everything the step kept."""
    requests: dict[str, list[Json]] = {}
    for event in read_lines(folder / "events.jsonl"):
        if event["event_type"] == "model_request" and event["data"]["status"] == "ok":
            requests.setdefault(event["rollout_id"], []).append(event["data"])
    return Record(
        calls={rollout: [to_call(data) for data in items] for rollout, items in requests.items()},
        requests=requests,
        sampler={row["request_id"]: row for row in read_lines(folder / "sampler.jsonl")},
        rollouts={row["rollout"]["rollout_id"]: row["rollout"] for row in read_lines(folder / "rollouts.jsonl")},
        rows=list(read_lines(folder / "rows.jsonl")),
        diagnostics=list(read_lines(folder / "diagnostics.jsonl")),
        source=str(read_json(folder / "status.json").get("source", "unknown")),
    )


def audit_tokens(record: Record, behaviour: Policy, params: Params) -> Json:
    """Every captured token: the gateway's word against the sampler's, and both against the behaviour policy."""
    faults: list[str] = []
    captured = rescored = joined = 0
    join_difference = rescore_difference = 0.0
    calls = [call for items in record.calls.values() for call in items]
    for call in calls:
        captured += len(call.response)
        own = record.sampler.get(call.request_id)
        if own is None:
            faults.append(f"call {call.request_id} is not in the sampler's own log")
            continue
        joined += 1
        if own["prompt_token_ids"] != call.prompt or own["response_token_ids"] != call.response:
            faults.append(f"call {call.request_id}: gateway and sampler differ in token ids")
        if len(call.log_probs) != len(call.response):
            faults.append(
                f"call {call.request_id}: {len(call.response)} tokens, {len(call.log_probs)} log-probabilities"
            )
            continue
        join_difference = max(join_difference, largest(call.log_probs, own["logprobs"]))
        again = [score(behaviour, call.prompt + call.response[:i], token) for i, token in enumerate(call.response)]
        rescored += len(again)
        rescore_difference = max(rescore_difference, largest(call.log_probs, again))
    sampled = sum(len(row["response_token_ids"]) for row in record.sampler.values())
    lost = set(record.sampler) - {call.request_id for call in calls}
    if lost:
        faults.append(f"{len(lost)} calls of the sampler's log did not reach the gateway's record")
    if rescored != captured or captured != sampled:
        faults.append(f"{sampled} tokens sampled, {captured} captured, {rescored} scored again")
    if not rescore_difference <= params.rescore_tolerance:
        faults.append(f"scored again, log-probabilities differ by {rescore_difference:.3e}")
    if not join_difference <= params.join_tolerance:
        faults.append(f"gateway and sampler differ in log-probabilities by {join_difference:.3e}")
    return {
        "faults": faults,
        "calls": len(calls),
        "joined": joined,
        "tokens": captured,
        "coverage": rescored / captured if captured else 0.0,
        "largest_rescore_difference": rescore_difference,
        "largest_join_difference": join_difference,
    }


def score(policy: Policy, context: list[int], token: int) -> float:
    """Log-probability of the token after the context."""
    return float(policy.score_one(context)[len(context) - 1][token])


def largest(left: Sequence[float], right: Sequence[float]) -> float:
    """Largest absolute difference; infinite where the lengths differ or a value is none."""
    if len(left) != len(right):
        return math.inf
    worst = max((abs(a - b) for a, b in zip(left, right, strict=True)), default=0.0)
    return worst if math.isfinite(worst) else math.inf


def audit_tool_loss(record: Record, behaviour: Policy) -> Json:
    """No token but sampled ones is trainable; and the loss itself does not see the others."""
    faults: list[str] = []
    observed = trainable = 0
    for row in record.rows:
        expected = sampled_positions(record.calls[row["rollout_id"]])
        marked = {i for i, bit in enumerate(row["mask"]) if bit}
        observed += len(row["tokens"]) - len(expected)
        trainable += len(marked)
        if marked - expected:
            faults.append(f"row {row['rollout_id']}: position {min(marked - expected)} is trained and was not sampled")
        if expected - marked:
            faults.append(f"row {row['rollout_id']}: position {min(expected - marked)} was sampled and is not trained")
    gradient = gradient_test(record, behaviour)
    if not gradient["observations_change_nothing"]:
        faults.append("labels of observation tokens change the loss or its gradients")
    if not gradient["a_sampled_token_changes_it"]:
        faults.append("the label of a sampled token does not change the loss: the test proves nothing")
    return {"faults": faults, "observation_tokens": observed, "trainable_tokens": trainable, "gradient_test": gradient}


def sampled_positions(calls: Sequence[Call]) -> set[int]:
    """Where the sampled tokens stand in the sequence that the last call ends."""
    return {i for call in calls for i in range(len(call.prompt), len(call.prompt) + len(call.response))}


def gradient_test(record: Record, behaviour: Policy) -> Json:
    """Loss and gradients of the trainer's own code with other labels at observation positions, bit for bit; and with
    another label at one sampled position, which must change them."""
    # The trainer is an input of this stage: it is wherever that stands.
    import ppo
    from training_rows import Row, to_batch

    rows = [Row(to_episode(row, record), row["tokens"], row["mask"], row["log_probs"]) for row in record.rows]
    batch = to_batch(rows, behaviour.config.context)
    reference = np.asarray(ppo.token_log_probs(behaviour.config, behaviour.params, batch))
    labels = batch.tokens[:, 1:]
    is_sampled = batch.mask[:, 1:] > 0

    def measure(chosen: Any) -> list[Any]:
        def loss(params: Any) -> Any:
            return ppo.policy_loss(behaviour.config, params, reference, batch, clip=0.2, kl_weight=0.01, labels=chosen)[
                0
            ]

        value, gradients = jax.jit(jax.value_and_grad(loss))(behaviour.params)
        return [np.asarray(value), *(np.asarray(gradients[name]) for name in sorted(gradients))]

    def other(where: Any) -> Any:
        return np.where(where, (labels + 1) % behaviour.config.vocabulary, labels)

    one = np.zeros_like(is_sampled)
    one[tuple(np.argwhere(is_sampled)[0])] = True
    base, observations, sampled = measure(labels), measure(other(~is_sampled)), measure(other(one))
    return {
        "observations_change_nothing": all(np.array_equal(a, b) for a, b in zip(base, observations, strict=True)),
        "a_sampled_token_changes_it": any(not np.array_equal(a, b) for a, b in zip(base, sampled, strict=True)),
        "labels_changed": int((~is_sampled).sum()),
    }


def to_episode(row: Json, record: Record) -> Episode:
    """The episode of a stored row, for the trainer's own batching."""
    question = Question(row["group_id"], record.rollouts[row["rollout_id"]]["input"]["question"], "")
    task = Task(row["rollout_id"], question, int(row["sample"]), int(row["seed"]))
    return Episode(task, record.calls[row["rollout_id"]], float(row["reward"]))


def audit_identity(record: Record, behaviour: Policy, held_out: Sequence[Question]) -> Json:
    """One policy, one question a group, each call of its own rollout, and nothing of what is held out."""
    faults: list[str] = []
    secret = [tuple(render([{"role": "user", "content": question.question}])) for question in held_out]
    leaks = held_out_found = 0
    groups: dict[str, set[str]] = {}
    for row in record.rows:
        rollout = record.rollouts[row["rollout_id"]]
        asked = rollout["input"]["question"]
        groups.setdefault(row["group_id"], set()).add(asked)
        for call, request in zip(record.calls[row["rollout_id"]], record.requests[row["rollout_id"]], strict=True):
            said = [message["content"] for message in request["request"]["messages"] if message["role"] == "user"]
            if said != [asked]:
                faults.append(f"rollout {row['rollout_id']} asked {asked!r}, a call of it {said!r}")
            strangers = [turn for turn in user_turns(call.prompt) if turn != asked]
            leaks += len(strangers)
            if strangers:
                faults.append(f"rollout {row['rollout_id']}: a prompt holds the question {strangers[0]!r} of another")
            if call.policy_revision != behaviour.revision or call.policy_version != row["policy_version"]:
                faults.append(
                    f"rollout {row['rollout_id']}: a call by policy {call.policy_revision[:12]} version "
                    f"{call.policy_version}, trained as {behaviour.revision[:12]} version {row['policy_version']}"
                )
        if row["policy_revision"] != behaviour.revision:
            faults.append(f"row {row['rollout_id']} names policy {row['policy_revision'][:12]}")
        if rollout["metadata"]["group_id"] != row["group_id"]:
            faults.append(
                f"row {row['rollout_id']}: group {row['group_id']}, made for {rollout['metadata']['group_id']}"
            )
        held_out_found += sum(tuple(row["tokens"][: len(prompt)]) == prompt for prompt in secret)
    for group, questions in groups.items():
        if len(questions) != 1:
            faults.append(f"group {group} holds {len(questions)} questions")
    if held_out_found:
        faults.append(f"{held_out_found} rows hold a held-out question")
    accounted = {row["rollout_id"] for row in record.rows} | {row["rollout_id"] for row in record.diagnostics}
    return {
        "faults": faults,
        "groups": len(groups),
        "policy_revision": behaviour.revision,
        "held_out_prompts_found": held_out_found,
        "questions_of_others_found": leaks,
        "rollouts": len(record.rollouts),
        "unaccounted": len(set(record.rollouts) - accounted),
    }


def user_turns(tokens: Sequence[int]) -> list[str]:
    """What users say in a prompt, from its tokens alone: each rollout's question is the canary of the others."""
    turns = []
    for start, token in enumerate(tokens):
        if token == SPECIALS["<|user|>"]:
            end = tokens.index(END, start)
            turns.append(bytes(tokens[start + 1 : end]).decode())
    return turns


if __name__ == "__main__":
    main()
