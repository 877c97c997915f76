"""Supervised warm start: makes the frozen baseline from demonstrations, a function of its arguments alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import optax
from demonstrations import demonstrate

from pilot_rl.policy import Config, Params, forward, init_params
from pilot_rl.questions import Question


def warm_start(
    config: Config,
    questions: Sequence[Question],
    *,
    steps: int,
    batch: int,
    learning_rate: float,
    seed: int,
    say: Callable[[str], None],
) -> tuple[Params, list[float]]:
    """Parameters after `steps` of Adam on the assistant's tokens, and the loss of each step."""
    episodes = [demonstrate(question, config.context) for question in questions]
    tokens = np.stack([e.tokens for e in episodes])
    masks = np.stack([e.mask for e in episodes])
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0),
        optax.adam(optax.warmup_cosine_decay_schedule(0.0, learning_rate, steps // 10, steps)),
    )

    def loss_of(params: Params, x: jax.Array, mask: jax.Array) -> jax.Array:
        scored = jax.nn.log_softmax(forward(config, params, x[:, :-1]), -1)
        picked = jnp.take_along_axis(scored, x[:, 1:, None], -1)[..., 0]
        return -(picked * mask[:, 1:]).sum() / mask[:, 1:].sum()

    @jax.jit
    def step(
        params: Params, state: optax.OptState, x: jax.Array, mask: jax.Array
    ) -> tuple[Params, optax.OptState, jax.Array]:
        loss, gradients = jax.value_and_grad(loss_of)(params, x, mask)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, loss

    rng = np.random.default_rng([seed, 1])
    params = init_params(config, seed)
    state = optimizer.init(params)
    losses = []
    for i in range(steps):
        chosen = rng.integers(0, len(tokens), batch)
        params, state, loss = step(params, state, tokens[chosen], masks[chosen])
        losses.append(loss)
        if (i + 1) % max(1, steps // 5) == 0:
            say(f"warm start {i + 1}/{steps}, loss {float(loss):.4f}")
    return {name: np.asarray(value) for name, value in params.items()}, [float(x) for x in losses]
