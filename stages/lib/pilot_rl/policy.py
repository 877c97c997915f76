"""The policy: a small decoder-only transformer in float32, its checkpoint folder and its revision.

A checkpoint folder holds model.safetensors, config.json, tokenizer.json, chat_template.json and manifest.json
(the sha256 of each of the others). The policy revision is the sha256 of the manifest's canonical JSON.
Sampling and re-scoring both call `score_one`: the same program on the same shapes, so their bits agree.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from pilot_rl.records import canonical, read_json, sha256, sha256_file
from pilot_rl.tokenizer import PAD, VOCABULARY, template_bytes, tokenizer_bytes

Params = dict[str, Any]
POLICY_FILES = ("chat_template.json", "config.json", "model.safetensors", "tokenizer.json")


@dataclass(frozen=True)
class Config:
    """Shape of the transformer."""

    context: int = 64
    width: int = 64
    layers: int = 2
    heads: int = 4
    vocabulary: int = VOCABULARY


def init_params(config: Config, seed: int) -> Params:
    """Fresh parameters, a function of config and seed alone (NumPy's PCG64)."""
    rng = np.random.default_rng(seed)
    width = config.width

    def normal(*shape: int) -> NDArray[np.float32]:
        return (rng.standard_normal(shape) * 0.08).astype(np.float32)

    params: Params = {
        "embedding": normal(config.vocabulary, width),
        "position": normal(config.context, width),
        "output": normal(width, config.vocabulary),
        "norm": np.ones(width, np.float32),
    }
    for i in range(config.layers):
        params |= {
            f"layer{i}.attention.in": normal(width, 3 * width),
            f"layer{i}.attention.out": normal(width, width),
            f"layer{i}.attention.norm": np.ones(width, np.float32),
            f"layer{i}.mlp.in": normal(width, 4 * width),
            f"layer{i}.mlp.out": normal(4 * width, width),
            f"layer{i}.mlp.norm": np.ones(width, np.float32),
        }
    return params


def forward(config: Config, params: Params, tokens: Any) -> Any:
    """Logits, float32 [batch, length, vocabulary], of int32 [batch, length]."""
    batch, length = tokens.shape
    hidden = params["embedding"][tokens] + params["position"][:length]
    causal = jnp.tril(jnp.ones((length, length), bool))
    for i in range(config.layers):
        normed = _rms(hidden, params[f"layer{i}.attention.norm"])
        heads = (normed @ params[f"layer{i}.attention.in"]).reshape(batch, length, config.heads, -1)
        query, key, value = jnp.split(heads, 3, -1)
        scores = jnp.einsum("bihd,bjhd->bhij", query, key) / np.sqrt(config.width // config.heads)
        weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), -1)
        mixed = jnp.einsum("bhij,bjhd->bihd", weights, value).reshape(batch, length, -1)
        hidden = hidden + mixed @ params[f"layer{i}.attention.out"]
        normed = _rms(hidden, params[f"layer{i}.mlp.norm"])
        hidden = hidden + jax.nn.gelu(normed @ params[f"layer{i}.mlp.in"]) @ params[f"layer{i}.mlp.out"]
    return _rms(hidden, params["norm"]) @ params["output"]


def _rms(hidden: Any, gain: Any) -> Any:
    return hidden * gain / jnp.sqrt(jnp.mean(hidden * hidden, -1, keepdims=True) + 1e-6)


@partial(jax.jit, static_argnums=0)
def logits_of(config: Config, params: Params, tokens: Any) -> Any:
    """Compiled `forward`."""
    return forward(config, params, tokens)


@partial(jax.jit, static_argnums=0)
def _log_probs(config: Config, params: Params, tokens: Any) -> Any:
    return jax.nn.log_softmax(forward(config, params, tokens), -1)


@dataclass(frozen=True)
class Policy:
    """Parameters with the shape they belong to and the revision that names them."""

    config: Config
    params: Params
    revision: str

    def score_one(self, tokens: list[int]) -> NDArray[np.float32]:
        """Log-probabilities [context, vocabulary] after each position of one padded sequence."""
        scored = _log_probs(self.config, self.params, pad(tokens, self.config.context)[None])
        row: NDArray[np.float32] = np.asarray(scored, np.float32)[0]
        return row


def pad(tokens: list[int], length: int) -> NDArray[np.int32]:
    """The tokens as int32, padded on the right. Raises ValueError where they do not fit."""
    if len(tokens) > length:
        raise ValueError(f"{len(tokens)} tokens do not fit a context of {length}")
    return np.array(tokens + [PAD] * (length - len(tokens)), np.int32)


def save_policy(folder: Path, config: Config, params: Params) -> str:
    """Writes a checkpoint folder. Returns its revision."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: np.ascontiguousarray(params[name], np.float32) for name in sorted(params)}
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_bytes(canonical(asdict(config)))
    (folder / "tokenizer.json").write_bytes(tokenizer_bytes())
    (folder / "chat_template.json").write_bytes(template_bytes())
    manifest = {"files": {name: sha256_file(folder / name) for name in POLICY_FILES}}
    (folder / "manifest.json").write_bytes(canonical(manifest))
    return sha256(canonical(manifest))


def load_policy(folder: Path) -> Policy:
    """Reads a checkpoint folder. Raises ValueError where a file is not what the manifest says."""
    manifest = read_json(folder / "manifest.json")
    for name in POLICY_FILES:
        expected, got = manifest["files"].get(name), sha256_file(folder / name)
        if expected != got:
            raise ValueError(f"{name} of the checkpoint: expected sha256 {expected}, got {got}")
    if (folder / "tokenizer.json").read_bytes() != tokenizer_bytes():
        raise ValueError("the checkpoint was made with another tokenizer")
    if (folder / "chat_template.json").read_bytes() != template_bytes():
        raise ValueError("the checkpoint was made with another chat template")
    config = Config(**read_json(folder / "config.json"))
    return Policy(config, load_file(folder / "model.safetensors"), sha256(canonical(manifest)))


def probe_tokens(config: Config) -> NDArray[np.int32]:
    """The fixed probe: 16 sequences of every kind of token, a function of the config alone."""
    rng = np.random.default_rng(20_251_201)
    return rng.integers(0, config.vocabulary, (16, config.context), dtype=np.int32)
