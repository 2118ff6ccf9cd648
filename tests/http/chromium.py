"""A real Chromium without a window, steered by its DevTools protocol over two pipes: no port, no library."""
import base64
import json
import os
import pathlib
import select
import shutil
import signal
import struct
import tempfile
import time
import zlib

LIMIT_S = 240  # for one answer, which takes a moment on a quiet machine


class DoesNotStart(Exception):
    """A Chromium that is there and does not answer at all, as one in a snap does not to who has another home."""


class Chromium:
    """Use it in a `with`. Single-threaded. One tab; `events` has what came unasked, as (method, params)."""

    def __init__(self, program):
        self.program = program
        self.events = []
        self.asked = 0
        self.session = None
        self.unread = b""

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kumo_chromium_"))
        theirs_in, self.to = os.pipe()
        self.out, theirs_out = os.pipe()
        # It reads from descriptor 3 and writes to 4.
        null = os.open(os.devnull, os.O_RDWR)
        high = [os.dup(fd) for fd in (theirs_in, theirs_out)]
        while min(high) <= 4:
            high = [os.dup(fd) for fd in high]
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", "--disable-sync",
                 "--no-proxy-server", "--remote-debugging-pipe", f"--user-data-dir={self.folder}"]
        self.pid = os.posix_spawn(
            self.program, [self.program, *flags],
            {**os.environ, "HOME": str(self.folder), "DBUS_SESSION_BUS_ADDRESS": "disabled:"},
            file_actions=[(os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)] +
                         [(os.POSIX_SPAWN_DUP2, high[0], 3), (os.POSIX_SPAWN_DUP2, high[1], 4)],
            setsid=True)
        for fd in {theirs_in, theirs_out, null, *high}:
            os.close(fd)
        try:
            try:
                self.ask("Browser.getVersion")
            except AssertionError as error:
                raise DoesNotStart(f"{self.program}: {error}") from error
            target = self.ask("Target.createTarget", url="about:blank")["targetId"]
            attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
            self.session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.ask(f"{domain}.enable")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _next(self):
        end = time.monotonic() + LIMIT_S
        while b"\0" not in self.unread:
            ready, _, _ = select.select([self.out], [], [], max(0, end - time.monotonic()))
            got = os.read(self.out, 1 << 20) if ready else b""
            if not got:
                raise AssertionError("chromium has ended" if ready else "chromium does not answer")
            self.unread += got
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **parameters):
        self.asked += 1
        question = {"id": self.asked, "method": method, "params": parameters}
        if self.session:
            question["sessionId"] = self.session
        try:
            os.write(self.to, json.dumps(question).encode() + b"\0")
        except BrokenPipeError as error:
            raise AssertionError("chromium has ended") from error
        while True:
            message = self._next()
            if message.get("id") == self.asked:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message["result"]
            if "method" in message:
                self.events.append((message["method"], message["params"]))

    def evaluate(self, script):
        """The value of an expression in the page; of a promise, once it is kept."""
        result = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def until(self, condition):
        """Waits in the page until a condition holds there, looking before each frame."""
        kept = self.evaluate(f"""new Promise(done => {{
            const end = performance.now() + {LIMIT_S * 500};
            const look = () => {{
              let held = false;
              try {{ held = Boolean({condition}); }} catch (error) {{ }}
              if (held || performance.now() > end) done(held); else setTimeout(look, 20);
            }};
            look();
        }})""")
        if not kept:
            raise AssertionError(f"{condition}: not within {LIMIT_S / 2} s; the page says: "
                                 + self.evaluate("document.body.innerText"))

    def screenshot(self):
        """(PNG, rows of RGB bytes) of what is seen."""
        png = base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])
        return png, rows_of(png)

    def __exit__(self, *_):
        # All of it: it was made the leader of a session.
        os.killpg(self.pid, signal.SIGKILL)  # it is not waited for before, so that it is there
        os.waitpid(self.pid, 0)
        os.close(self.to)
        os.close(self.out)
        shutil.rmtree(self.folder, ignore_errors=True)


def rows_of(png):
    """The rows of a PNG of 8 bits a channel, RGB or RGBA without interlace, as bytes of RGB."""
    if png[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("no PNG")
    at, data, header = 8, b"", None
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        if kind == b"IHDR":
            header = struct.unpack(">IIBBBBB", png[at + 8:at + 8 + length])
        if kind == b"IDAT":
            data += png[at + 8:at + 8 + length]
        at += length + 12
    width, height, depth, color, _, _, interlace = header
    if depth != 8 or color not in (2, 6) or interlace:
        raise ValueError(f"PNG of {header}")
    step = 3 if color == 2 else 4
    raw, stride, rows, above = zlib.decompress(data), width * step, [], bytes(width * step)
    for y in range(height):
        kind, *row = raw[y * (stride + 1):(y + 1) * (stride + 1)]
        for x in range(stride):
            left = row[x - step] if x >= step else 0
            corner = above[x - step] if x >= step else 0
            row[x] = (row[x] + predicted(kind, left, above[x], corner)) & 255
        above = row
        rows.append(bytes(value for x, value in enumerate(row) if x % step < 3))
    return rows


def predicted(kind, left, up, corner):
    """What a byte is said as the difference from, by a row's filter."""
    if kind < 4:
        return (0, left, up, (left + up) // 2)[kind]
    guess = left + up - corner
    return min((left, up, corner), key=lambda one: abs(guess - one))
