"""Real proxies, as their own projects ship them, and a bridge whose account is behind one."""

import os
import socket
import sys
import time
from pathlib import Path

import httpx

from places import BRIDGE
from programs import Program

LISTENING = r"http://127\.0\.0\.1:(\d+)"
# In an address one character is spelt otherwise. Nothing that the bridge says may hold what both spellings share.
SECRET = "hunter2"
USER, PASSWORD, SPELT = "someone", f"{SECRET}@more", f"{SECRET}%40more"

# pproxy expects that there is an event loop, which newer Pythons make only when asked.
PPROXY = "import asyncio, pproxy.server; asyncio.set_event_loop(asyncio.new_event_loop()); pproxy.server.main()"

CONFIG = """
[server]
listen = "127.0.0.1:0"

[providers.up]
base_url = "{upstream}"
transport = "{transport}"
{ca_file}

[[providers.up.accounts]]
name = "main"
credential = "client"
proxy = {proxy}

[state]
path = "{state}"
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


class Proxy:
    """`kind` is http (proxy.py) or socks5 (pproxy), with or without a password. `tls`: files of a key and a certificate with which
    clients are to speak to it."""

    def __init__(self, kind: str, password: bool, tls: tuple[Path, Path] | None = None):
        self.kind, self.port = kind, free_port()
        if kind == "http":
            # One process, which is the one that connects.
            command = ["-m", "proxy", "--hostname", "127.0.0.1", "--port", str(self.port), "--threadless"]
            command += ["--num-acceptors", "1", "--num-workers", "1"]
            command += ["--basic-auth", f"{USER}:{PASSWORD}"] if password else []
            command += ["--key-file", str(tls[0]), "--cert-file", str(tls[1])] if tls else []
        else:
            credential = f"#{USER}:{PASSWORD}" if password else ""
            command = ["-c", PPROXY, "-v", "-l", f"socks5://127.0.0.1:{self.port}{credential}"]
        self.program = Program([sys.executable, "-u", *command])
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < end, self.program.transcript()
                time.sleep(0.05)

    @property
    def module(self) -> str:
        """What its command line, and no other program's here, holds."""
        return "-m proxy --hostname" if self.kind == "http" else "pproxy.server.main()"

    def address(self, scheme: str, credential: str = "") -> str:
        return f"{scheme}://{credential}127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.program.stop()


class ProxiedBridge:
    """`serve` before `upstream`, through a proxy alone. The environment names other ones, and exceptions, all in vain."""

    def __init__(self, directory: Path, upstream: str, transport: str, proxy: str, ca_file: Path | None):
        directory.mkdir()
        config = directory / "bridge.toml"
        config.write_text(
            CONFIG.format(
                upstream=upstream,
                transport=transport,
                ca_file=f'ca_file = "{ca_file}"' if ca_file else "",
                # An address with a password comes from outside of the file.
                proxy='{ env = "ITS_PROXY" }' if "@" in proxy else f'"{proxy}"',
                state=directory / "state",
            )
        )
        elsewhere = dict.fromkeys(["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"], f"http://127.0.0.1:{free_port()}")
        exceptions = {"NO_PROXY": "*", "no_proxy": "*"}
        environment = os.environ | elsewhere | exceptions | {"ITS_PROXY": proxy}
        command = [str(BRIDGE), "serve", "--config", str(config), "--log-level", "debug"]
        self.program = Program(command, env=environment)

    def listens(self) -> "ProxiedBridge":
        port = self.program.wait_for(LISTENING, within=20).group(1)
        self.base_url = f"http://127.0.0.1:{port}/v1"
        return self

    def post(self, session: str) -> httpx.Response:
        body = {"model": "gpt-5", "input": "hello", "store": False, "stream": True}
        headers = {"authorization": "Bearer sk-foreign", "session-id": session}
        return httpx.post(f"{self.base_url}/responses", json=body, headers=headers, timeout=30, trust_env=False)

    def said(self) -> str:
        return "\n".join([*self.program.stdout, *self.program.stderr])

    def stop(self) -> None:
        self.program.stop()
