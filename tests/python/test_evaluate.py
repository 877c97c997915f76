"""The comparison: paired by question, honest about nothing, and failures in no mean. Rows are fixtures."""

from typing import Any

import pytest
from evaluate import Params, compare

PARAMS = Params(seed=1, resamples=2000, confidence=0.95)


def fixture_rows(rewards: dict[str, list[float | None]]) -> list[dict[str, Any]]:
    return [
        {"task_id": task, "question": task, "sample": i, "seed": i, "reward": reward}
        for task, samples in rewards.items()
        for i, reward in enumerate(samples)
    ]


def test_equal_rewards_are_no_measurable_change() -> None:
    rows = fixture_rows({f"q{i}": [float(i % 2), 1.0] for i in range(20)})

    found = compare(rows, rows, PARAMS)

    assert found["verdict"] == "no measurable change"
    assert found["difference"] == 0
    assert found["interval"] == [0, 0]


def test_a_clear_gain_is_an_improvement_and_its_mirror_is_worse() -> None:
    before = fixture_rows({f"q{i}": [0.0, 0.0] for i in range(20)})
    after = fixture_rows({f"q{i}": [1.0, float(i % 2)] for i in range(20)})

    assert compare(before, after, PARAMS)["verdict"] == "improved"
    assert compare(after, before, PARAMS)["verdict"] == "worse"


def test_samples_of_one_question_are_not_independent() -> None:
    one = compare(fixture_rows({"q": [0.0] * 50}), fixture_rows({"q": [1.0] * 50}), PARAMS)
    many = fixture_rows({f"q{i}": [0.0] for i in range(4)})
    mixed = compare(many, fixture_rows({f"q{i}": [float(i < 2)] for i in range(4)}), PARAMS)

    assert one["questions"] == 1
    assert mixed["interval"][0] <= 0 <= mixed["interval"][1]


def test_a_failed_rollout_is_in_no_mean() -> None:
    before = fixture_rows({"a": [1.0, None], "b": [1.0, 1.0]})
    after = fixture_rows({"a": [1.0, 1.0], "b": [None, 1.0]})

    found = compare(before, after, PARAMS)

    assert (found["pairs"], found["unpaired"], found["difference"]) == (2, 2, 0)


def test_other_tasks_are_refused() -> None:
    with pytest.raises(SystemExit, match="same tasks"):
        compare(fixture_rows({"a": [1.0]}), fixture_rows({"b": [1.0]}), PARAMS)
