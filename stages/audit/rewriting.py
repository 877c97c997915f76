"""A harness that rewrites its context: each tool result replaces what was said before it. The audit of aggregation
runs it, since the calculator harness only ever appends."""

from __future__ import annotations

import os
import sys

from pilot_rl.calculator import TOOLS, Endpoint, ModelUnavailable, ToolFailed, use_calculator
from pilot_rl.process import die_with_parent
from pilot_rl.worker import EXIT_FAILED, FAILURE_EVENT, post_event, score


class Agent:
    """The class that `config.local.agent_class` of a rollout names."""

    def run(self) -> None:
        """One episode, from the variables of the rollout's `env_map`."""
        die_with_parent()
        env = os.environ
        endpoint = Endpoint(env["AGL_OPENAI_BASE_URL"], env["AGL_KEY"])
        try:
            answer = run_episode(
                endpoint,
                env["PILOT_QUESTION"],
                seed=int(env["PILOT_SEED"]),
                turns=int(env["PILOT_TURNS"]),
                max_tokens=int(env["PILOT_MAX_TOKENS"]),
            )
        except (ModelUnavailable, ToolFailed) as error:
            kind = "gateway" if isinstance(error, ModelUnavailable) else "tool"
            post_event(env, FAILURE_EVENT, {"kind": kind, "message": str(error)})
            sys.exit(EXIT_FAILED)
        post_event(env, "reward", {"value": score(answer, env["PILOT_ANSWER"]), "source": "agent"})


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
