"""A headless Chromium, driven over a pipe by the DevTools protocol: the standard library is enough."""

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Chromium:
    """One browser with one page."""

    def __init__(self):
        name = next((name for name in NAMES if shutil.which(name)), None)
        if name is None:
            raise SystemExit("no Chromium here: apt-get install chromium")
        self.profile = tempfile.mkdtemp()
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--hide-scrollbars", "--force-device-scale-factor=1", "--no-first-run"]
        shell = ["sh", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "sh", name, "--remote-debugging-pipe"]
        self.process = subprocess.Popen(
            [*shell, f"--user-data-dir={self.profile}", *flags, "about:blank"],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.numbers, self.rest, self.errors, self.session = itertools.count(1), b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        # Processor time, which other programs on the machine do not lengthen.
        self.call("Performance.enable", timeDomain="threadTicks")

    def close(self):
        self.process.terminate()
        self.process.wait(10)
        # Its own children may still write there.
        for _ in range(50):
            shutil.rmtree(self.profile, ignore_errors=True)
            if not os.path.exists(self.profile):
                break
            time.sleep(0.1)

    def call(self, method, **params):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            answer = self.message(deadline)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def message(self, deadline):
        while b"\0" not in self.rest:
            if not select.select([self.read_end], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            read = os.read(self.read_end, 1 << 20)
            if not read:
                raise RuntimeError("Chromium has ended")
            self.rest += read
        one, self.rest = self.rest.split(b"\0", 1)
        one = json.loads(one)
        self.note(one.get("method"), one.get("params", {}))
        return one

    def note(self, method, params):
        """Keeps everything that a console would show as an error."""
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str([arg.get("value", arg.get("description")) for arg in params["args"]]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def open(self, path, width, scheme):
        """Seconds of the page's thread until it is drawn."""
        self.errors.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url="about:blank")
        begun, before = time.monotonic(), self.busy()
        self.call("Page.navigate", url=path.resolve().as_uri())
        drawn = ("document.documentElement?.dataset.ready === 'yes' && "
                 "[...document.querySelectorAll('.chart')].every((chart) => chart.firstChild)")
        while not self.evaluate(drawn):
            if time.monotonic() - begun > 60:
                raise TimeoutError(f"{path} is not drawn: {self.errors}")
            time.sleep(0.02)
        return self.busy() - before

    def busy(self):
        metrics = self.call("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in metrics if one["name"] == "TaskDuration")

    def screenshot(self, path):
        width = self.evaluate("innerWidth")
        # All of it in the window: what is far below is laid out when it comes near.
        for _ in range(2):
            height = self.evaluate("document.documentElement.scrollHeight")
            self.call("Emulation.setDeviceMetricsOverride", width=width, height=min(height, 8000),
                      deviceScaleFactor=1, mobile=False)
            self.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 8000), "scale": 1}
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(answer["data"]))

    def click(self, script):
        """A press of the mouse in the middle of the element that `script` finds."""
        x, y = self.evaluate(
            f"(() => {{ const found = {script}; found.scrollIntoView({{ block: 'center' }});"
            " const box = found.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, name, code, text=None):
        down = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, windowsVirtualKeyCode=code, **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, windowsVirtualKeyCode=code)

    def write(self, text):
        for letter in text:
            self.call("Input.dispatchKeyEvent", type="char", text=letter)
