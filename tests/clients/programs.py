"""A program under test as a child process, with every line it prints kept and waited for."""

import re
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


class Program:
    """Started at once; `stop` ends it. Lines of both outputs can be read while it runs."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None):
        self.command = list(command)
        self.stdout: list[str] = []
        self.stderr: list[str] = []
        self._grew = threading.Condition()
        self._process = subprocess.Popen(
            self.command,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._readers = [
            threading.Thread(target=self._collect, args=(stream, lines), daemon=True)
            for stream, lines in ((self._process.stdout, self.stdout), (self._process.stderr, self.stderr))
        ]
        for reader in self._readers:
            reader.start()

    def _collect(self, stream, lines: list[str]) -> None:
        for line in stream:
            with self._grew:
                lines.append(line.rstrip("\n"))
                self._grew.notify_all()
        with self._grew:
            self._grew.notify_all()

    def wait_until(self, found, within: float, what: str):
        """The first true value of `found()`, asked again after each line; `within` is in seconds."""
        end = time.monotonic() + within
        with self._grew:
            while not (value := found()):
                left = end - time.monotonic()
                if self._process.poll() is not None and not any(r.is_alive() for r in self._readers):
                    raise AssertionError(f"{self.command[0]} ended before {what}\n{self.transcript()}")
                if left <= 0:
                    raise AssertionError(f"{what}: not within {within} s\n{self.transcript()}")
                self._grew.wait(min(left, 0.2))
            return value

    def wait_for(self, pattern: str, within: float) -> re.Match[str]:
        """The first line of either output that contains `pattern`."""
        regex = re.compile(pattern)

        def found() -> re.Match[str] | None:
            return next(filter(None, map(regex.search, self.stdout + self.stderr)), None)

        return self.wait_until(found, within, f"a line like {pattern!r}")

    def finish(self, within: float) -> int:
        """Waits for the program to end by itself; its exit code."""
        try:
            code = self._process.wait(within)
        except subprocess.TimeoutExpired:
            self.stop()
            raise AssertionError(f"{self.command[0]} still runs after {within} s\n{self.transcript()}") from None
        for reader in self._readers:
            reader.join(5)
        return code

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def stop(self, within: float = 10) -> None:
        """SIGTERM, and SIGKILL for one that does not obey."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(within)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for reader in self._readers:
            reader.join(5)

    def transcript(self) -> str:
        """The end of what it printed, for a failure's message."""
        return "\n".join(["--- stdout", *self.stdout[-40:], "--- stderr", *self.stderr[-60:]])
