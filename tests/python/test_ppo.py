"""The update: observations teach nothing, sampled tokens do, and the same rows give the same bytes."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from ppo import policy_loss, token_log_probs, update
from training_rows import Batch, Row, to_batch, to_row

from pilot_rl.policy import Config, init_params
from pilot_rl.questions import make_question
from pilot_rl.rollouts import Call, Episode, Task

CONFIG = Config(context=32, width=16, layers=1, heads=2)
PARAMS = init_params(CONFIG, 3)


def fixture_row(sample: int, reward: float, response: list[int]) -> Row:
    """A made-up episode of two turns with an observation between them (fixture)."""
    first = Call("a", "r", 0, [256, 260, 49, 257, 261], response, [-1.0] * len(response), "tool_calls")
    seen = [262, 53, 54, 257, 261]
    second = Call("b", "r", 0, first.prompt + response + seen, [53, 257], [-0.5, -0.5], "stop")
    return to_row(Episode(Task(f"t-{sample}", make_question("1+2"), sample, sample), [first, second], reward))


def fixture_batch() -> Batch:
    return to_batch([fixture_row(0, 1.0, [99, 257]), fixture_row(1, 0.0, [98, 257])], CONFIG.context)


def gradients(batch: Batch, labels: Any = None) -> tuple[float, dict[str, Any]]:
    reference = np.asarray(token_log_probs(CONFIG, PARAMS, batch))
    if labels is not None:
        reference = labels(reference)

    def loss(params: dict[str, Any]) -> Any:
        return policy_loss(CONFIG, params, reference, batch, clip=0.2, kl_weight=0.01)[0]

    value, gradient = jax.value_and_grad(loss)(PARAMS)
    return float(value), {name: np.asarray(array) for name, array in gradient.items()}


def same(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return all(np.array_equal(left[name], right[name]) for name in left)


def test_what_is_recorded_at_observations_changes_no_bit_of_loss_and_gradients() -> None:
    batch = fixture_batch()
    changed = replace(batch, log_probs=np.where(batch.mask > 0, batch.log_probs, np.float32(-7.0)))

    loss, gradient = gradients(batch)
    other_loss, other_gradient = gradients(changed)

    assert loss == other_loss
    assert same(gradient, other_gradient)


def test_what_is_recorded_at_a_sampled_token_does() -> None:
    batch = fixture_batch()
    sampled = np.argwhere(batch.mask > 0)[0]
    log_probs = batch.log_probs.copy()
    log_probs[tuple(sampled)] -= 0.5

    assert not same(gradients(batch)[1], gradients(replace(batch, log_probs=log_probs))[1])


def test_the_same_rows_in_any_order_give_the_same_bytes() -> None:
    rows = [fixture_row(0, 1.0, [99, 257]), fixture_row(1, 0.0, [98, 257])]
    options = {"epochs": 2, "learning_rate": 1e-3, "clip": 0.2, "kl_weight": 0.01}

    first, history = update(CONFIG, PARAMS, to_batch(rows, CONFIG.context), **options)  # type: ignore[arg-type]
    second, _ = update(CONFIG, PARAMS, to_batch(rows[::-1], CONFIG.context), **options)  # type: ignore[arg-type]

    assert same(first, second)
    assert not same(first, PARAMS)
    assert {"loss", "entropy", "gradient_norm", "clip_fraction", "kl_to_baseline"} <= set(history[0])


def test_advantages_are_normalised_within_the_group() -> None:
    assert np.allclose(fixture_batch().advantages, [1.0, -1.0], atol=1e-4)


def test_a_rewritten_context_is_refused() -> None:
    row = fixture_row(0, 1.0, [99, 257])
    first, second = row.episode.calls
    rewritten = replace(second, prompt=[256, 260, 50, *second.prompt[3:]])

    with pytest.raises(ValueError, match="does not extend"):
        to_row(replace(row.episode, calls=[first, rewritten]))
