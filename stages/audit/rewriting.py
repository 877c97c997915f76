"""A harness that rewrites its context: each tool result replaces what was said before it. The audit of aggregation
runs it, since the calculator harness only ever appends."""

from __future__ import annotations

from pilot_rl.calculator import TOOLS, Endpoint, use_calculator
from pilot_rl.worker import play


class Agent:
    """The class that `config.local.agent_class` of a rollout names."""

    def run(self) -> None:
        """One episode, from the variables of the rollout's `env_map`."""
        play(run_episode)


def run_episode(endpoint: Endpoint, question: str, *, seed: int, turns: int, max_tokens: int) -> str | None:
    """The final answer, or None. After a tool call the question is asked anew with the result in its place."""
    asked = question
    for _ in range(turns):
        answer = endpoint.complete(
            {
                "model": "policy",
                "messages": [{"role": "user", "content": asked}],
                "tools": TOOLS,
                "max_tokens": max_tokens,
                "seed": seed,
                "logprobs": True,
            }
        )
        choice = answer["choices"][0]
        calls = choice["message"].get("tool_calls") or []
        if not calls:
            return str(choice["message"]["content"]) if choice["finish_reason"] == "stop" else None
        result = use_calculator(calls[0])
        rest = asked[3:] if len(asked) > 3 else ""
        asked = result + rest
    return None
