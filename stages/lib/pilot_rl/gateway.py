"""The real Agent Lightning gateway and controller, on loopback, free ports and a random key, while a block runs.

The upstream processes keep everything in memory: read all that is wanted before the block ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pilot_rl.process import end_strays, running, wait_until

MODEL = "policy"
_MARK = "PILOT_GATEWAY_ID"
_START_SECONDS = 60.0
_GRACE_SECONDS = 5.0
_ATTEMPTS = 5


class GatewayFailed(RuntimeError):
    """A process of the gateway ended, or did not start."""


@dataclass(frozen=True)
class Gateway:
    """The gateway's API."""

    url: str
    key: str
    processes: dict[str, subprocess.Popen[bytes]]
    #: Environment entry that every process of this gateway carries.
    mark: str

    def get(self, path: str) -> Any:
        """The JSON answer of a GET. Raises GatewayFailed."""
        return self._call(path, None)

    def post(self, path: str, body: object) -> Any:
        """The JSON answer of a POST. Raises GatewayFailed."""
        return self._call(path, json.dumps(body).encode())

    def check(self) -> None:
        """Raises GatewayFailed where a process has ended."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                raise GatewayFailed(f"{name} ended with {process.returncode}; its words are in {name}.log")

    def _call(self, path: str, body: bytes | None) -> Any:
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}{path}", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            said = error.read(500).decode(errors="replace")
            raise GatewayFailed(f"{path}: status {error.code}: {said}") from error
        except OSError as error:
            raise GatewayFailed(f"{path}: {error}") from error


@contextlib.contextmanager
def open_gateway(folder: Path, *, endpoint: str, version: int, workers: int) -> Iterator[Gateway]:
    """Gateway and controller, with the policy at `endpoint` registered under a version. Logs go to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    key = secrets.token_urlsafe(24)
    ident = secrets.token_hex(8)
    environment = {**os.environ, "PILOT_GATEWAY_KEY": key, _MARK: ident}
    try:
        with contextlib.ExitStack() as stack:
            server, url = _start_server(stack, folder, environment)
            argv = [
                _script("agl-controller"),
                "runner_type=local",
                f"agl_server.url={url}",
                "agl_server.key=${oc.env:PILOT_GATEWAY_KEY}",
                "local_runner.poll_interval=0.1",
                f"local_runner.maximum_size={workers}",
                "hydra.run.dir=.",
                "hydra.output_subdir=null",
            ]
            controller = stack.enter_context(
                running(argv, environment=environment, cwd=folder, log=folder / "controller.log", grace=_GRACE_SECONDS)
            )
            gateway = Gateway(url, key, {"gateway": server, "controller": controller}, f"{_MARK}={ident}")
            gateway.post("/api/models", [{"model": MODEL, "endpoint": endpoint, "version": version}])
            yield gateway
    finally:
        # Workers run in groups of their own, which the controller ends; this finds what it left.
        end_strays(f"{_MARK}={ident}")


def _start_server(
    stack: contextlib.ExitStack, folder: Path, environment: dict[str, str]
) -> tuple[subprocess.Popen[bytes], str]:
    for _ in range(_ATTEMPTS):
        port = _free_port()
        argv = [
            _script("agl-server"),
            "host=127.0.0.1",
            f"port={port}",
            "key=${oc.env:PILOT_GATEWAY_KEY}",
            f"default_proxy.model_name={MODEL}",
            "default_proxy.val.temperature=1.0",
            "hydra.run.dir=.",
            "hydra.output_subdir=null",
        ]
        attempt = contextlib.ExitStack()
        server = attempt.enter_context(
            running(argv, environment=environment, cwd=folder, log=folder / "gateway.log", grace=_GRACE_SECONDS)
        )
        url = f"http://127.0.0.1:{port}"
        wait_until(
            lambda server=server, url=url: server.poll() is not None or _is_up(url),  # type: ignore[misc]
            seconds=_START_SECONDS,
            every=0.05,
            what="the gateway did not answer",
        )
        if server.poll() is None:
            stack.push(attempt.pop_all())
            return server, url
        # Somebody took the port between the look and the start.
        attempt.close()
    raise GatewayFailed(f"agl-server did not start {_ATTEMPTS} times; its words are in {folder / 'gateway.log'}")


def _is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _script(name: str) -> str:
    return str(Path(sys.executable).parent / name)
