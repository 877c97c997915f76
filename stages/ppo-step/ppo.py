"""One PPO update: clipped ratio, group-normalised advantage, KL to the baseline. A function of its arguments alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from training_rows import Batch

from pilot_rl.policy import Config, Params, forward

Metrics = dict[str, float]

LOSS_NORMALISATION = "mean over the sampled tokens of the batch"
ADVANTAGE = "reward less the mean of its group, over its standard deviation; the same for every token of an episode"


def policy_loss(
    config: Config,
    params: Mapping[str, Any],
    reference: Any,
    batch: Batch,
    *,
    clip: float,
    kl_weight: float,
    labels: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """Loss and its parts, means over the sampled tokens. `reference`: log-probabilities [rows, length - 1] of the
    baseline for the tokens from the second on, which are the labels unless others are given (an audit's).
    Positions with mask 0 count for nothing."""
    scored = jax.nn.log_softmax(forward(config, dict(params), batch.tokens[:, :-1]), -1)
    targets = jnp.asarray(batch.tokens[:, 1:] if labels is None else labels)
    new = jnp.take_along_axis(scored, targets[..., None], -1)[..., 0]
    mask = batch.mask[:, 1:]
    count = mask.sum()

    def mean(values: Any) -> Any:
        return (values * mask).sum() / count

    old = batch.log_probs[:, 1:]
    ratio = jnp.exp((new - old) * mask)
    advantage = batch.advantages[:, None]
    surrogate = -jnp.minimum(ratio * advantage, jnp.clip(ratio, 1 - clip, 1 + clip) * advantage)
    difference = (reference - new) * mask
    kl = jnp.exp(difference) - difference - 1
    entropy = -(jnp.exp(scored) * scored).sum(-1)
    loss = mean(surrogate) + kl_weight * mean(kl)
    parts = {
        "policy_loss": mean(surrogate),
        "kl_to_baseline": mean(kl),
        "max_kl_to_baseline": (kl * mask).max(),
        "entropy": mean(entropy),
        "clip_fraction": mean((jnp.abs(ratio - 1) > clip) * 1.0),
        "ratio_max": jnp.where(mask > 0, ratio, 1.0).max(),
    }
    return loss, parts


def token_log_probs(config: Config, params: Params, batch: Batch) -> Any:
    """Log-probabilities [rows, length - 1] of the tokens from the second on."""
    scored = jax.nn.log_softmax(forward(config, params, batch.tokens[:, :-1]), -1)
    return jnp.take_along_axis(scored, jnp.asarray(batch.tokens)[:, 1:, None], -1)[..., 0]


def update(
    config: Config, params: Params, batch: Batch, *, epochs: int, learning_rate: float, clip: float, kl_weight: float
) -> tuple[Params, list[Metrics]]:
    """The updated parameters, and the metrics of each epoch, measured before its step."""
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(learning_rate))
    reference = token_log_probs(config, params, batch)

    @jax.jit
    def step(current: Params, state: optax.OptState) -> tuple[Params, optax.OptState, dict[str, Any]]:
        def loss_of(p: Params) -> tuple[Any, dict[str, Any]]:
            return policy_loss(config, p, reference, batch, clip=clip, kl_weight=kl_weight)

        (loss, parts), gradients = jax.value_and_grad(loss_of, has_aux=True)(current)
        changes, state = optimizer.update(gradients, state, current)
        measured = {**parts, "loss": loss, "gradient_norm": optax.tree.norm(gradients)}
        return optax.apply_updates(current, changes), state, measured

    state = optimizer.init(params)
    current = params
    history: list[Metrics] = []
    for _ in range(epochs):
        current, state, measured = step(current, state)
        history.append({name: float(value) for name, value in measured.items()})
    loss, parts = policy_loss(config, current, reference, batch, clip=clip, kl_weight=kl_weight)
    history.append({**{name: float(value) for name, value in parts.items()}, "loss": float(loss)})
    return {name: np.asarray(value) for name, value in current.items()}, history
