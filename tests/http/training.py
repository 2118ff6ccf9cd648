"""A run that is watched over HTTP: two servers and two workers, real ones, that train on drawn digits until
they are told to stop. Addresses are sockets in a folder of its own and ports that the kernel picks."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "bench"), str(ROOT / "tests")]
import log_messages

LIMIT_S = 120  # for what takes a second or two
NAMES = ("server-0", "server-1", "worker-0", "worker-1")
EXPERIMENT = f"""
include = {ROOT}/experiments/mnist_lenet.conf
[job]
epochs = 100000
[network]
file = {ROOT}/tests/multiproc/small_lenet.pbtxt
[sync]
warmup_samples = 0
block = 2
[evaluation]
every_epochs = 1
[checkpoint]
every_epochs = 1
grace_s = 20
[http]
address = 127.0.0.1:0
"""


def await_(what, look):
    """Looks until there is something, and returns it."""
    end = time.monotonic() + LIMIT_S
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {LIMIT_S} s")
        time.sleep(0.05)


# Whatever proxy the environment names: it is all on loopback.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def fetch(url):
    with OPENER.open(url, timeout=LIMIT_S) as answer:
        return answer.read().decode()


class Training:
    """Use it in a `with`; `urls` has each process's address, as http://127.0.0.1:43211/."""

    def __init__(self, programs):
        self.programs = pathlib.Path(programs)
        self.processes = {}
        self.urls = {}

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kumo_http_"))
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self):
        subprocess.run([self.programs / "kumo-data", "digits", "--out", self.folder, "--train", "2000",
                        "--validation", "256"], check=True, capture_output=True)
        experiment = self.folder / "watched.conf"
        experiment.write_text(EXPERIMENT)
        sockets = ", ".join(f"ipc://{self.folder}/{index}" for index in range(2))
        common = [experiment, "--set", f"cluster.servers={sockets}", "--set",
                  f"data.directory={self.folder}", "--set", "data.cache=", "--set",
                  f"output.directory={self.folder}/out"]
        for name in NAMES:
            role, index = name.split("-")
            who = ["--index", index] if role == "server" else ["--name", name]
            # Server 0 is shown where the experiment says.
            where = [] if name == "server-0" else ["--http", "127.0.0.1:0"]
            with open(self.folder / f"{name}.out", "w") as printed:
                self.processes[name] = subprocess.Popen(
                    [self.programs / f"kumo-{role}", *common, *who, *where], stdout=printed,
                    stderr=subprocess.STDOUT)
        for name in NAMES:
            self.urls[name] = await_(f"the address of {name}", lambda: self._shown_at(name))

    def _shown_at(self, name):
        if self.processes[name].poll() is not None:
            raise AssertionError(f"{name} ended: " + (self.folder / f"{name}.out").read_text())
        for log in (self.folder / "out" / "logs").glob(f"{name}.*.log"):
            found = log_messages.pattern("page").search(log.read_text())
            if found:
                return found[1]
        return None

    def metrics(self, name):
        return fetch(self.urls[name] + "metrics")

    def await_epochs(self, epochs):
        """Until so many epochs are trained and validated, and a checkpoint is there."""
        def reached():
            for name in NAMES:
                self._shown_at(name)
            text = self.metrics("server-0")
            epoch = re.search(r"^kumo_epoch (\d+)", text, re.MULTILINE)
            return (epoch and int(epoch[1]) > epochs and "\nkumo_validation_loss " in text
                    and "\nkumo_checkpoint_round " in text)
        await_(f"{epochs} epochs", reached)
        self._leave_processors()

    def _leave_processors(self):
        """Workers train on with the processor time that other tests leave."""
        for name in ("worker-0", "worker-1"):
            for thread in pathlib.Path(f"/proc/{self.processes[name].pid}/task").iterdir():
                os.setpriority(os.PRIO_PROCESS, int(thread.name), 19)

    def stop(self):
        """As on Ctrl-C: server 0 is told, and all end."""
        self.processes["server-0"].send_signal(signal.SIGTERM)

    def __exit__(self, *_):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(self.folder)
