"""Debian's Chromium without a window, driven by the W3C WebDriver protocol: what of it these tests need, over plain HTTP."""

import base64
import contextlib
import json
import subprocess
import tempfile
import time
from pathlib import Path

import httpx

from programs import Program

CHROMIUM = "/usr/bin/chromium"
CHROMEDRIVER = "/usr/bin/chromedriver"
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-proxy-server",
]
# How a reference to an element is written, by the W3C's recommendation.
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"tab": "\ue004", "enter": "\ue007", "space": "\ue00d", "shift": "\ue008", "down": "\ue015"}


class Driver:
    """chromedriver, for all tests of a run."""

    def __init__(self):
        self.program = Program([CHROMEDRIVER, "--port=0"])
        port = self.program.wait_for(r"successfully on port (\d+)", within=30).group(1)
        self.root = f"http://127.0.0.1:{port}"

    @contextlib.contextmanager
    def browser(self, *, javascript: bool = True, width: int = 1360, height: int = 1000):
        """A browser with a profile of its own."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            browser = Browser(self.root, profile, javascript)
            try:
                browser.size(width, height)
                yield browser
            finally:
                browser.close()

    def stop(self) -> None:
        self.program.stop()


class Browser:
    def __init__(self, root: str, profile: str, javascript: bool):
        args = [*FLAGS, f"--user-data-dir={profile}"]
        chrome = {"binary": CHROMIUM, "args": args}
        if not javascript:
            chrome["prefs"] = {"profile.managed_default_content_settings.javascript": 2}
        wanted = {"browserName": "chrome", "goog:chromeOptions": chrome, "goog:loggingPrefs": {"browser": "ALL"}}
        self._http = httpx.Client(timeout=60, trust_env=False)
        answer = self._http.post(f"{root}/session", json={"capabilities": {"alwaysMatch": wanted}})
        assert answer.status_code == 200, answer.text
        self._session = f"{root}/session/{answer.json()['value']['sessionId']}"

    def _ask(self, method: str, path: str, body: dict | None = None):
        answer = self._http.request(method, self._session + path, json={} if body is None and method == "POST" else body)
        if answer.status_code == 404 and answer.json()["value"]["error"] in ("no such element", "stale element reference"):
            raise Gone(answer.text)
        assert answer.status_code == 200, answer.text
        return answer.json()["value"]

    def close(self) -> None:
        self._http.delete(self._session)
        self._http.close()

    def cdp(self, command: str, **params):
        """A command of Chromium's own protocol."""
        return self._ask("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def size(self, width: int, height: int) -> None:
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme: str, *, motion: str = "no-preference") -> None:
        """`light` or `dark`, as the person has set it."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": motion},
        ]
        self.cdp("Emulation.setEmulatedMedia", features=features)

    def open(self, url: str) -> None:
        self._ask("POST", "/url", {"url": url})

    @property
    def url(self) -> str:
        return self._ask("GET", "/url")

    @property
    def source(self) -> str:
        return self._ask("GET", "/source")

    def run(self, script: str, *args):
        """The value of a script's `return`. Works where pages may not run scripts of their own, too."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(args)})

    def run_async(self, script: str, *args):
        """What a script gives to its last argument."""
        return self._ask("POST", "/execute/async", {"script": script, "args": list(args)})

    def find(self, css: str) -> "Element":
        return Element(self, self._ask("POST", "/element", {"using": "css selector", "value": css})[ELEMENT])

    def find_all(self, css: str) -> list["Element"]:
        found = self._ask("POST", "/elements", {"using": "css selector", "value": css})
        return [Element(self, one[ELEMENT]) for one in found]

    @property
    def focused(self) -> "Element":
        return Element(self, self._ask("GET", "/element/active")[ELEMENT])

    def press(self, *keys: str) -> None:
        """Keys one after another, as a keyboard sends them; `shift+tab` holds one down."""
        actions = []
        for key in keys:
            *held, last = key.split("+")
            held = [KEYS[name] for name in held]
            actions += [{"type": "keyDown", "value": value} for value in held]
            for value in [KEYS[last]] if last in KEYS else last:
                actions += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
            actions += [{"type": "keyUp", "value": value} for value in reversed(held)]
        self._ask("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def cookies(self) -> list[dict]:
        return self._ask("GET", "/cookie")

    def complaints(self) -> list[str]:
        """What the browser's console has said since it was asked last."""
        entries = self._ask("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def text(self) -> str:
        """All text that can be seen."""
        return self.find("body").text

    def wait(self, found, within: float = 20, what: str = "what was waited for"):
        """The first true value of `found()`."""
        end = time.monotonic() + within

        def looked():
            # Between two pages, or while a panel is replaced, there is nothing to be looked at.
            with contextlib.suppress(Gone):
                return found()

        while not (value := looked()):
            assert time.monotonic() < end, f"{what}: not within {within} s\n{self.text()}"
            time.sleep(0.05)
        return value

    def shoot(self, path: Path) -> None:
        """A picture of the whole page."""
        size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": max(size["width"], self.run("return window.innerWidth")), "height": size["height"], "scale": 1}
        shot = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(shot["data"]))


class Gone(AssertionError):
    """The element is not, or no longer, in the page."""


class Element:
    def __init__(self, browser: Browser, id: str):
        self._browser, self._path = browser, f"/element/{id}"

    def _get(self, what: str):
        return self._browser._ask("GET", f"{self._path}/{what}")

    @property
    def text(self) -> str:
        return self._get("text")

    @property
    def tag(self) -> str:
        return self._get("name")

    @property
    def role(self) -> str:
        """As a screen reader is told."""
        return self._get("computedrole")

    @property
    def label(self) -> str:
        """As a screen reader is told."""
        return self._get("computedlabel")

    def attribute(self, name: str) -> str | None:
        return self._get(f"attribute/{name}")

    def click(self) -> None:
        self._browser._ask("POST", f"{self._path}/click")

    def follow(self) -> None:
        """Clicks on what leads to another page, and waits until that one is there."""
        self._browser.run("document.left = true")
        self.click()

        def arrived():
            # On the way from one page to another there may be none that could be asked.
            with contextlib.suppress(AssertionError):
                return self._browser.run("return !document.left && document.readyState === 'complete'")

        self._browser.wait(arrived, what="another page")

    def type(self, text: str) -> None:
        self._browser._ask("POST", f"{self._path}/value", {"text": text})

    def choose(self, value: str) -> None:
        """One of a list's values."""
        self._browser.find(f"#{self.attribute('id')} option[value='{value}']").click()
