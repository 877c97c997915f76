"""The policy behind an OpenAI-compatible endpoint on loopback: exact token ids in and out, chosen-token log-probs.

Every answer is a function of the request and the policy alone. Each call is also written to a log of the
sampler's own, which never passes the gateway: audits join the two on the request id.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from pilot_rl.noise import gumbel
from pilot_rl.policy import Policy
from pilot_rl.records import Json, canonical, sha256
from pilot_rl.tokenizer import END, content_of, decode, encode, parse_tool_call, render


class BadRequest(ValueError):
    """The request cannot be answered; the client is told why with status 400."""


@dataclass(frozen=True)
class Sampled:
    """Tokens sampled for one turn and the log-probability of each under the distribution it was drawn from."""

    tokens: list[int]
    log_probs: list[float]
    finish_reason: str


def sample(
    policy: Policy, prompt: list[int], *, question: str, seed: int, turn: int, temperature: float, limit: int
) -> Sampled:
    """Samples one turn by Gumbel argmax, or greedily at temperature 0."""
    tokens: list[int] = []
    log_probs: list[float] = []
    while len(tokens) < limit and len(prompt) + len(tokens) < policy.config.context:
        sequence = prompt + tokens
        scores = tempered(policy.score_one(sequence)[len(sequence) - 1], temperature)
        noisy = scores
        if temperature > 0:
            noisy = scores + gumbel(question, seed, turn, len(tokens), len(scores))
        token = int(np.argmax(noisy))
        tokens.append(token)
        log_probs.append(float(scores[token]))
        if token == END:
            return Sampled(tokens, log_probs, "stop" if parse_tool_call(tokens) is None else "tool_calls")
    if not tokens:
        raise BadRequest(f"a prompt of {len(prompt)} tokens leaves no room in a context of {policy.config.context}")
    return Sampled(tokens, log_probs, "length")


def tempered(scores: Any, temperature: float) -> Any:
    """Log-probabilities at a temperature; unchanged bits at 1, and at 0 (greedy), where they are those of 1."""
    if temperature in (0.0, 1.0):
        return scores
    scaled = scores.astype(np.float64) / temperature
    return scaled - np.logaddexp.reduce(scaled)


@dataclass
class Sampler:
    """Serves one policy until closed. `calls` is the log, complete once `close` has returned."""

    policy: Policy
    model: str
    log_path: Path
    calls: list[Json] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Starts to serve, with the policy compiled."""
        self.policy.score_one([0])
        self._log = self.log_path.open("ab")
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.sampler = self
        self._thread = threading.Thread(target=self._server.serve_forever, name="sampler", daemon=True)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        """Base URL of the API."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        """Stops serving; `calls` is complete from then on."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._log.close()
        self.calls.sort(key=lambda call: call["request_id"])

    def answer(self, body: Mapping[str, Any]) -> Json:
        """The completion of one request. Raises BadRequest."""
        request = _read_request(body)
        with self._lock:
            sampled = sample(self.policy, **request)
        request_id = _request_id(self.policy.revision, request)
        self._record(request_id, request, sampled)
        return _completion(request_id, self.model, self.policy.revision, request["prompt"], sampled)

    def _record(self, request_id: str, request: Json, sampled: Sampled) -> None:
        row = {
            "request_id": request_id,
            "policy_revision": self.policy.revision,
            "question": request["question"],
            "seed": request["seed"],
            "turn": request["turn"],
            "temperature": request["temperature"],
            "prompt_token_ids": request["prompt"],
            "response_token_ids": sampled.tokens,
            "logprobs": sampled.log_probs,
            "finish_reason": sampled.finish_reason,
        }
        with self._lock:
            self.calls.append(row)
            self._log.write(canonical(row) + b"\n")
            self._log.flush()


def _read_request(body: Mapping[str, Any]) -> Json:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("messages: expected a list that is not empty")
    users = [m["content"] for m in messages if m.get("role") == "user"]
    seed = body.get("seed")
    if not users or not isinstance(seed, int) or seed < 0:
        raise BadRequest("expected a user message and a natural number as seed: they key the noise")
    try:
        prompt = render(messages)
    except (KeyError, TypeError, ValueError) as error:
        raise BadRequest(f"messages: {error}") from error
    return {
        "prompt": prompt,
        "question": str(users[0]),
        "seed": seed,
        "turn": sum(m["role"] == "assistant" for m in messages),
        "temperature": float(body.get("temperature", 1.0)),
        "limit": int(body.get("max_tokens", 16)),
    }


def _request_id(revision: str, request: Json) -> str:
    return "chatcmpl-" + sha256(canonical([revision, request]))[:24]


def _completion(request_id: str, model: str, revision: str, prompt: list[int], sampled: Sampled) -> Json:
    expression = parse_tool_call(sampled.tokens)
    message: Json = {"role": "assistant", "content": decode(sampled.tokens)}
    if expression is not None:
        arguments = json.dumps({"expression": expression})
        function = {"name": "calculator", "arguments": arguments}
        call = {"id": "call" + request_id.removeprefix("chatcmpl"), "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        _require_round_trip(message, sampled.tokens)
    content: list[Json] = [
        {"token": decode([token]) or "<|end|>", "logprob": log_prob, "bytes": None, "top_logprobs": []}
        for token, log_prob in zip(sampled.tokens, sampled.log_probs, strict=True)
    ]
    return {
        "id": request_id,
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "system_fingerprint": revision,
        "prompt_token_ids": prompt,
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": sampled.finish_reason,
                "token_ids": sampled.tokens,
                "logprobs": {"content": content},
            }
        ],
        "usage": {
            "prompt_tokens": len(prompt),
            "completion_tokens": len(sampled.tokens),
            "total_tokens": len(prompt) + len(sampled.tokens),
        },
    }


def _require_round_trip(message: Json, tokens: list[int]) -> None:
    if [*encode(content_of(message)), END] != tokens:
        raise AssertionError("a parsed tool call does not render back to the tokens it was sampled as")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    sampler: Sampler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Silent: the sampler keeps its own log."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            if self.path != "/v1/chat/completions":
                raise BadRequest(f"no such path: {self.path}")
            self._send(HTTPStatus.OK, self.server.sampler.answer(json.loads(body)))
        except BadRequest as error:
            self._send(HTTPStatus.BAD_REQUEST, {"error": {"message": str(error), "type": "invalid_request_error"}})

    def _send(self, status: HTTPStatus, value: Json) -> None:
        data = canonical(value)
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
