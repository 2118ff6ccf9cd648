"""Jobs whose workers are Python programs, in folders of their own: what their tests share.

The programs run in the Python that KUMO_ONNX_PYTHON names, which needs numpy, those with torch in the one
that KUMO_TORCH_PYTHON names, and those with JAX in that of KUMO_JAX_PYTHON. Tests whose Python lacks what
they need are skipped.
"""
import argparse
import atexit
import concurrent.futures
import functools
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import ctest

HERE = pathlib.Path(__file__).resolve().parent
NUMPY = os.environ.get("KUMO_ONNX_PYTHON", sys.executable)
TORCH = os.environ.get("KUMO_TORCH_PYTHON", sys.executable)
JAX = os.environ.get("KUMO_JAX_PYTHON", sys.executable)
LIMIT = 240  # seconds; longer than any job here takes on a busy machine
BIN = pathlib.Path()  # where kumo and the other programs are: main() sets it


@functools.lru_cache(None)
def has(python, modules):
    return subprocess.run([python, "-c", f"import {modules}"], capture_output=True).returncode == 0


@functools.lru_cache(None)
def warm(python, modules):
    """The words before a program that begin it in a process with imported modules (warm_python.py)."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    words = [python, str(HERE / "warm_python.py")]
    server = subprocess.Popen([*words, "serve", f"{folder}/socket", modules], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    atexit.register(server.communicate)
    assert server.stdout.readline() == b"ready\n"
    return [python, "-S", "-E", *words[1:], "run", f"{folder}/socket"]


def environment(**variables):
    folders = [BIN.parent / "share/kumo/python", HERE.parent]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders)), **variables}


def together(*runs):
    """The results of functions, which mostly wait for processes."""
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        return [started.result() for started in [pool.submit(run) for run in runs]]


def numbers(digits):
    return struct.unpack(f"{len(digits) // 8}f", bytes.fromhex(digits))


class Job:
    """A job in a folder of its own. program: its words."""

    def __init__(self, program, settings):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        command = " ".join(f"'{word}'" for word in program)
        sections = {"worker": [f'command = "{command}"'], "output": ["directory = out"]}
        for setting in settings:
            section, line = setting.split(".", 1)
            sections.setdefault(section, []).append(line)
        (self.folder / "job.conf").write_text("".join(
            f"[{section}]\n" + "".join(line + "\n" for line in lines) for section, lines in sections.items()))

    def launch(self, *arguments, conf="job.conf", **variables):
        return subprocess.run(
            [BIN / "kumo", "launch", conf, "--json", *arguments], cwd=self.folder, text=True,
            capture_output=True, timeout=LIMIT, env={**os.environ, **variables})

    def python(self, python, program, **variables):
        """The output of a program text."""
        done = subprocess.run([python, "-c", program], cwd=self.folder, text=True, capture_output=True,
                              env=environment(**variables))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def weights(self, python):
        """{name: digits of its numbers} of the newest checkpoint."""
        return json.loads(self.python(python, (
            "import json, kumo; print(json.dumps({name: values.tobytes().hex() for name, values in "
            "kumo.load_state_dict('out').items()}))")))

    def log(self, name):
        return (self.folder / "out/logs" / name).read_text()

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class JobTest(unittest.TestCase):
    def port(self):
        """A free port of 127.0.0.1. Until the test ends only programs that are told it can listen there."""
        reserved = socket.socket()
        self.addCleanup(reserved.close)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        return reserved.getsockname()[1]

    def job(self, python, program, settings):
        """python: a Python, or the words of warm()."""
        job = Job([*([python] if isinstance(python, str) else python), HERE / program], settings)
        self.addCleanup(job.remove)
        return job

    def cases(self, python, program):
        """Runs a program of tests without jobs. python: as in job()."""
        done = subprocess.run([*([python] if isinstance(python, str) else python), HERE / program], text=True,
                              capture_output=True, timeout=LIMIT, env=environment())
        if done.returncode == ctest.SKIPPED:
            self.skipTest(done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def ends(self, code, launched):
        self.assertEqual(launched.returncode, code, launched.stdout + launched.stderr)
        return json.loads(launched.stdout)

    def needs(self, python, modules, variable):
        if not has(python, modules):
            self.skipTest(f"{python} lacks one of {modules} ({variable} names a Python that has them)")

    def digits(self, folder):
        """A folder with a few drawn digits in the place of MNIST."""
        subprocess.run([BIN / "kumo-data", "digits", "--out", folder, "--train", "256", "--validation", "64"],
                       check=True, capture_output=True)
        return str(folder)


def main(doc):
    global BIN
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    arguments, rest = parser.parse_known_args()
    BIN = arguments.bin.resolve()
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # the build folder's package is that of the sources
    ctest.run(rest)
