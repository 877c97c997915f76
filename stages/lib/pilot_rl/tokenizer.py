"""Byte-level tokenizer and chat template of the pilot's policy.

A token is a byte (0-255) or a special that no text can spell: content is always encoded byte by byte, so a user
or a tool cannot smuggle in a turn boundary. The template is data (`TEMPLATE`); its exact bytes are kept in the
checkpoint and are what `chat_template_sha256` names. Rendering a conversation whose assistant turns were sampled
gives back the sampled tokens exactly, so each prompt extends the one before it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pilot_rl.records import canonical

BYTES = 256
SPECIALS: dict[str, int] = {
    "<|bos|>": 256,
    "<|end|>": 257,
    "<|pad|>": 258,
    "<|system|>": 259,
    "<|user|>": 260,
    "<|assistant|>": 261,
    "<|tool|>": 262,
}
VOCABULARY = BYTES + len(SPECIALS)
BOS, END, PAD = SPECIALS["<|bos|>"], SPECIALS["<|end|>"], SPECIALS["<|pad|>"]

TOKENIZER_ID = "calculator-bytes"

#: Parts of a rendered conversation. `turn` is `role`, then the content, then `end`.
TEMPLATE: dict[str, str] = {
    "begin": "<|bos|>",
    "role": "<|{role}|>",
    "end": "<|end|>",
    "generation": "<|assistant|>",
    "tool_call": "calc:",
}


def tokenizer_bytes() -> bytes:
    """What `tokenizer.json` holds; its sha256 is the tokenizer revision."""
    return canonical({"id": TOKENIZER_ID, "type": "byte-level", "bytes": BYTES, "specials": SPECIALS})


def template_bytes() -> bytes:
    """What `chat_template.json` holds; its sha256 is `chat_template_sha256`."""
    return canonical(TEMPLATE)


def encode(text: str) -> list[int]:
    """Tokens of a text: its UTF-8 bytes."""
    return list(text.encode())


def decode(tokens: Sequence[int]) -> str:
    """Text of sampled tokens for a reader; specials but `<|end|>` are shown by name. Never used to train."""
    names = {token: name for name, token in SPECIALS.items()}
    out = bytearray()
    for token in tokens:
        if token < BYTES:
            out.append(token)
        elif token != END:
            out += names[token].encode()
    return out.decode(errors="replace")


def render(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """Prompt tokens of a conversation, ending where the assistant goes on. Raises ValueError on a bad message."""
    tokens = _specials(TEMPLATE["begin"])
    for message in messages:
        tokens += _specials(TEMPLATE["role"].format(role=message["role"]))
        tokens += encode(content_of(message))
        tokens += _specials(TEMPLATE["end"])
    return tokens + _specials(TEMPLATE["generation"])


def content_of(message: Mapping[str, Any]) -> str:
    """Text of a message as the template spells it: a tool call becomes the words that were sampled for it."""
    calls = message.get("tool_calls") or []
    if not calls:
        return str(message.get("content") or "")
    if len(calls) != 1 or message["role"] != "assistant":
        raise ValueError("the template spells one tool call of an assistant")
    arguments = json.loads(calls[0]["function"]["arguments"])
    return TEMPLATE["tool_call"] + str(arguments["expression"])


def parse_tool_call(tokens: Sequence[int]) -> str | None:
    """The expression of a sampled tool call, or None where the tokens are no complete call in printable ASCII."""
    if not tokens or tokens[-1] != END:
        return None
    body = tokens[:-1]
    if any(not 32 <= token < 127 for token in body):
        return None
    text = bytes(body).decode("ascii")
    prefix = TEMPLATE["tool_call"]
    return text.removeprefix(prefix) if text.startswith(prefix) else None


def _specials(names: str) -> list[int]:
    if names not in SPECIALS:
        raise ValueError(f"no special token {names!r}")
    return [SPECIALS[names]]
