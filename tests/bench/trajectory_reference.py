"""The rules of hessian.trajectory.v1 on Python's own json: what the bench measures against.

One pass over a file, rows by line feed, duplicate keys by object_pairs_hook, the same structural checks and the same
rules of the whole file. Prints one JSON line: episodes, seconds, peak memory. Stops at the first fault.
"""

import argparse
import json
import math
import re
import resource
import time

POLICY = ("model_id", "revision", "tokenizer_id", "tokenizer_revision", "chat_template_sha256")
HARNESS = ("name", "version", "revision")
REWARD = ("value", "scorer", "scorer_revision")
EPISODE = ("schema_version", "episode_id", "task_id", "group_id", "seed", "source_kind", "policy", "harness", "reward", "calls")
CALL = ("call_id", "prompt_token_ids", "response_token_ids", "response_role", "response_loss_mask", "finish_reason", "context")
MUTABLE = frozenset(("main", "master", "head", "latest", "trunk", "dev", "develop"))
SHA256 = re.compile(r"[0-9a-f]{64}")


def unique(pairs: list) -> dict:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("json.duplicate_key")
    return record


def refuse(token: str) -> None:
    raise ValueError("json.nonfinite")


def want(holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(rule)


def fields(record: object, names: tuple, optional: str = "") -> None:
    want(type(record) is dict, "type.object")
    for name in names:
        want(name in record, "field.missing")
    want(len(record) == len(names) + (optional in record), "field.unknown")


def identifier(text: object) -> None:
    want(type(text) is str, "type.string")
    want(bool(text.strip()), "identifier.empty")
    text.encode()


def revision(text: object) -> None:
    identifier(text)
    name = text.strip().lower()
    want(name not in MUTABLE and not name.startswith(("refs/heads/", "origin/")), "revision.mutable")


def tokens(items: object) -> None:
    want(type(items) is list, "type.array")
    for item in items:
        if type(item) is not int or item < 0:
            raise ValueError("type.integer")


def check_call(call: object) -> int:
    fields(call, CALL, "behavior_logprobs")
    identifier(call["call_id"])
    tokens(call["prompt_token_ids"])
    response = call["response_token_ids"]
    tokens(response)
    want(call["response_role"] == "assistant", "role.response")
    mask = call["response_loss_mask"]
    want(type(mask) is list, "type.array")
    want(len(mask) == len(response), "mask.length")
    for bit in mask:
        if type(bit) is not int or bit not in (0, 1):
            raise ValueError("mask.value")
    want(call["finish_reason"] in ("stop", "length", "tool_calls"), "enum.finish_reason")
    for message in call["context"]:
        fields(message, ("role", "content"))
        want(message["role"] in ("system", "user", "assistant", "tool"), "role.context")
        want(type(message["content"]) is str, "type.string")
        message["content"].encode()
    logprobs = call.get("behavior_logprobs")
    if logprobs is not None:
        want(len(logprobs) == len(response), "logprob.length")
        for value in logprobs:
            if type(value) not in (int, float) or not math.isfinite(value):
                raise ValueError("type.number")
            if value > 0:
                raise ValueError("logprob.positive")
    return sum(mask)


def check_episode(row: object) -> None:
    fields(row, EPISODE)
    want(row["schema_version"] == "hessian.trajectory.v1", "schema_version")
    for name in ("episode_id", "task_id", "group_id"):
        identifier(row[name])
    want(type(row["seed"]) is int and row["seed"] >= 0, "type.integer")
    want(row["source_kind"] in ("captured", "fixture"), "enum.source_kind")
    policy, harness, reward = row["policy"], row["harness"], row["reward"]
    fields(policy, POLICY)
    for name in ("model_id", "tokenizer_id"):
        identifier(policy[name])
    for name in ("revision", "tokenizer_revision"):
        revision(policy[name])
    want(SHA256.fullmatch(policy["chat_template_sha256"]) is not None, "sha256.format")
    fields(harness, HARNESS)
    identifier(harness["name"])
    identifier(harness["version"])
    revision(harness["revision"])
    fields(reward, REWARD)
    want(type(reward["value"]) in (int, float) and math.isfinite(reward["value"]), "type.number")
    identifier(reward["scorer"])
    revision(reward["scorer_revision"])
    calls = row["calls"]
    want(type(calls) is list, "type.array")
    want(len(calls) > 0, "calls.empty")
    trainable = sum([check_call(call) for call in calls])
    want(len({call["call_id"] for call in calls}) == len(calls), "call_id.duplicate")
    want(trainable > 0, "mask.no_trainable")


def check_file(path: str) -> int:
    decoder = json.JSONDecoder(object_pairs_hook=unique, parse_constant=refuse)
    seen: set[str] = set()
    groups: dict[str, tuple] = {}
    with open(path, "rb") as file:
        for line in file:
            row = decoder.decode(line.decode("utf-8"))
            check_episode(row)
            want(row["episode_id"] not in seen, "episode_id.duplicate")
            seen.add(row["episode_id"])
            policy, harness, reward = row["policy"], row["harness"], row["reward"]
            identity = (
                row["task_id"],
                *(policy[name] for name in POLICY),
                *(harness[name] for name in HARNESS),
                reward["scorer"],
                reward["scorer_revision"],
            )
            want(groups.setdefault(row["group_id"], identity) == identity, "group.inconsistent")
    want(len(seen) > 0, "file.empty")
    return len(seen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    path = parser.parse_args().file
    start = time.perf_counter()
    episodes = check_file(path)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"episodes": episodes, "seconds": seconds, "peakMiB": peak}))


if __name__ == "__main__":
    main()
