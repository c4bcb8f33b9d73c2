"""A real browser for tests, spoken to over a pipe in its own protocol: no driver, no packages.

Chromium started with `--remote-debugging-pipe` reads commands from file descriptor 3 and writes
answers and events to 4, each a JSON text ended by a zero byte.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FOUND = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-first-run", "--remote-debugging-pipe")  # fmt: skip
# puts the pipes where the browser looks for them, and becomes the browser
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3]]
for place, end in enumerate(ends, 3):
    os.dup2(end, place)
    os.close(end)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page of a headless browser; `events` keeps all that it reported."""

    def __init__(self, profile: Path, size: tuple[int, int] = (1600, 900)):
        inward, self.writing = os.pipe()
        self.reading, outward = os.pipe()
        command = [sys.executable, "-c", LAUNCH, str(inward), str(outward), str(FOUND), *FLAGS,
                   f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}",
                   "about:blank"]  # fmt: skip
        self.process = subprocess.Popen(
            command, pass_fds=(inward, outward), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(inward)
        os.close(outward)
        self.rest, self.number, self.session = b"", 0, None
        self.events: list[dict[str, Any]] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1],
                  deviceScaleFactor=1, mobile=False)  # fmt: skip

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command and waits for its answer."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, f"{method}: {answer}"
                return dict(answer["result"])
            self.events.append(answer)

    def receive(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            more = os.read(self.reading, 1 << 16)
            assert more, "the browser has gone"
            self.rest += more
        text, _, self.rest = self.rest.partition(b"\0")
        return dict(json.loads(text))

    # --- what a person does ---

    def open(self, path: Path, ready: str = "document.body.dataset.ready === 'yes'") -> None:
        """Goes to a file and waits until its script says that it is ready."""
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        self.run("new Promise(done => { const look = () => document.body && " + ready
                 + " ? done(true) : setTimeout(look, 10); look(); })")  # fmt: skip

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True,
                           returnByValue=True)  # fmt: skip
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def click(self, element: str) -> None:
        """A mouse click in the middle of what a JavaScript expression finds."""
        x, y = self.run(
            f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center'}}); const b = "
            "e.getBoundingClientRect(); return [b.left + Math.min(b.width / 2, 60), "
            "b.top + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, *keys: str) -> None:
        for key in keys:
            text = {"text": key} if len(key) == 1 else {}
            codes = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38}
            for kind in ("keyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key=key,
                          windowsVirtualKeyCode=codes.get(key, 0),
                          **(text if kind == "keyDown" else {}))  # fmt: skip

    def screenshot(self, path: Path) -> None:
        shot = self.call("Page.captureScreenshot", format="png")
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    # --- what it saw ---

    def faults(self) -> list[str]:
        """Exceptions and messages of the console."""
        self.run("1")  # an answer comes after all events before it
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [json.dumps(e["params"]) for e in self.events if e["method"] in kinds]

    def addresses(self) -> list[str]:
        """What was asked of the network."""
        asked = (e for e in self.events if e["method"] == "Network.requestWillBeSent")
        return [e["params"]["request"]["url"] for e in asked]

    def close(self) -> None:
        self.session = None
        self.call("Browser.close")
        os.close(self.writing)
        os.close(self.reading)
        self.process.wait(timeout=20)
