"""The audits on made-up records (fixtures): what each section sees and what it must not be fooled by."""

from typing import Any

from audit import Params, Record, audit_identity, audit_tokens, user_turns

from pilot_rl.policy import Config, Policy, init_params
from pilot_rl.questions import make_question
from pilot_rl.rollouts import Call
from pilot_rl.tokenizer import END, encode, render

CONFIG = Config(context=64, width=16, layers=1, heads=2)
POLICY = Policy(CONFIG, init_params(CONFIG, 1), "fixture-revision")
PARAMS = Params(rescore_tolerance=1e-4, join_tolerance=1e-6)


def fixture_record(asked: str, seen: str) -> Record:
    """One rollout that was asked one thing, and whose prompt holds another or the same."""
    prompt = render([{"role": "user", "content": seen}])
    response = [*encode("3"), END]
    log_probs = [float(POLICY.score_one(prompt + response[:i])[len(prompt) + i - 1][t]) for i, t in enumerate(response)]
    call = Call("c", POLICY.revision, 0, prompt, response, log_probs, "stop")
    group = make_question(asked).task_id
    row: dict[str, Any] = {
        "rollout_id": "r",
        "group_id": group,
        "policy_revision": POLICY.revision,
        "policy_version": 0,
    }
    row |= {"tokens": prompt + response, "mask": [0] * len(prompt) + [1, 1]}
    own = {"request_id": "c", "prompt_token_ids": prompt, "response_token_ids": response, "logprobs": log_probs}
    return Record(
        calls={"r": [call]},
        requests={"r": [{"request": {"messages": [{"role": "user", "content": asked}]}}]},
        sampler={"c": own},
        rollouts={"r": {"input": {"question": asked}, "metadata": {"group_id": group}}},
        rows=[row],
        diagnostics=[],
        source="fixture",
    )


def test_what_users_say_is_read_from_the_tokens() -> None:
    messages = [
        {"role": "user", "content": "1+2"},
        {"role": "assistant", "content": "3"},
        {"role": "user", "content": "4"},
    ]

    assert user_turns(render(messages)) == ["1+2", "4"]


def test_a_clean_record_has_no_fault() -> None:
    record = fixture_record("1+2", "1+2")

    assert audit_identity(record, POLICY, [make_question("7*8")])["faults"] == []
    assert audit_tokens(record, POLICY, PARAMS)["faults"] == []


def test_the_question_of_another_rollout_in_the_tokens_is_found() -> None:
    found = audit_identity(fixture_record("1+2", "9+9"), POLICY, [make_question("7*8")])

    assert found["questions_of_others_found"] == 1
    assert "holds the question '9+9' of another" in found["faults"][0]


def test_a_held_out_question_among_the_rows_is_found() -> None:
    found = audit_identity(fixture_record("1+2", "1+2"), POLICY, [make_question("1+2")])

    assert found["held_out_prompts_found"] == 1


def test_a_call_that_never_reached_the_gateway_is_found() -> None:
    record = fixture_record("1+2", "1+2")
    record.sampler["lost"] = record.sampler["c"]

    faults = audit_tokens(record, POLICY, PARAMS)["faults"]

    assert any("did not reach" in fault for fault in faults)
