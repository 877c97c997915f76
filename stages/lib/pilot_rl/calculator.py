"""The harness under adoption: a calculator tool loop of bounded turns that talks to any OpenAI-compatible URL.

It knows a base URL and a key, nothing of gateways, tokens or training: pointing the URL elsewhere is all the
instrumentation there is.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from pilot_rl.questions import evaluate_operation

NAME, VERSION = "calculator-loop", "1"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "calculator",
            "description": "Does one operation on two integers.",
            "parameters": {
                "type": "object",
                "properties": {"expression": {"type": "string"}},
                "required": ["expression"],
            },
        },
    }
]


class ModelUnavailable(RuntimeError):
    """The model endpoint did not answer a request as it should."""


class ToolFailed(RuntimeError):
    """The calculator itself broke: no fault of what was asked of it."""


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible endpoint."""

    base_url: str
    key: str
    timeout: float = 60.0

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        """One chat completion. Raises ModelUnavailable."""
        request = urllib.request.Request(
            f"{self.base_url}/chat/completions",
            json.dumps(body).encode(),
            {"authorization": f"Bearer {self.key}", "content-type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:
                answer: dict[str, Any] = json.load(response)
        except urllib.error.HTTPError as error:
            raise ModelUnavailable(f"status {error.code}: {error.read(500).decode(errors='replace')}") from error
        except (OSError, ValueError) as error:
            raise ModelUnavailable(f"{type(error).__name__}: {error}") from error
        if not answer.get("choices"):
            raise ModelUnavailable("the answer has no choices")
        return answer


def run_episode(endpoint: Endpoint, question: str, *, seed: int, turns: int, max_tokens: int) -> str | None:
    """The final answer, or None where the policy gave none within its turns."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
    for _ in range(turns):
        answer = endpoint.complete(
            {
                "model": "policy",
                "messages": messages,
                "tools": TOOLS,
                "max_tokens": max_tokens,
                "seed": seed,
                "logprobs": True,
            }
        )
        choice = answer["choices"][0]
        message = choice["message"]
        calls = message.get("tool_calls") or []
        if not calls:
            return str(message["content"]) if choice["finish_reason"] == "stop" else None
        messages.append(message)
        for call in calls:
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": use_calculator(call)})
    return None


def use_calculator(call: dict[str, Any]) -> str:
    """What the tool says: a result, or `error` for an expression it cannot read. Raises ToolFailed."""
    try:
        expression = json.loads(call["function"]["arguments"])["expression"]
        return evaluate_operation(str(expression)) or "error"
    except Exception as error:
        raise ToolFailed(f"{type(error).__name__}: {error}") from error
