"""Demonstrated episodes for the warm start: the tokens a perfect assistant would see and say."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pilot_rl.policy import pad
from pilot_rl.questions import Question, evaluate_operation
from pilot_rl.tokenizer import END, content_of, encode, render


@dataclass(frozen=True)
class Demonstration:
    """One padded episode; `mask` is 1 where the assistant speaks."""

    tokens: NDArray[np.int32]
    mask: NDArray[np.float32]


def demonstrate(question: Question, length: int) -> Demonstration:
    """The episode that solves the question with one tool call for each operation."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": question.question}]
    for expression, result in _steps(question.question):
        arguments = json.dumps({"expression": expression})
        call = {"type": "function", "function": {"name": "calculator", "arguments": arguments}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "content": result})
    messages.append({"role": "assistant", "content": question.answer})
    tokens: list[int] = []
    mask: list[int] = []
    for i, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        prompt = render(messages[:i])
        spoken = [*encode(content_of(message)), END]
        mask += [0] * (len(prompt) - len(tokens)) + [1] * len(spoken)
        tokens = prompt + spoken
    return Demonstration(pad(tokens, length), np.array(mask + [0] * (length - len(mask)), np.float32))


def _steps(text: str) -> list[tuple[str, str]]:
    parts = re.fullmatch(r"(\d[+*-]\d)(?:([+*-])(\d))?", text)
    if parts is None:
        raise ValueError(f"not a calculator question: {text!r}")
    steps = [(parts[1], evaluate_operation(parts[1]) or "")]
    if parts[2]:
        second = f"{steps[0][1]}{parts[2]}{parts[3]}"
        steps.append((second, evaluate_operation(second) or ""))
    return steps
