#!/usr/bin/env python3
"""kumo launch --hosts, over a real sshd on each of three hosts in network namespaces.

  hosts_test.py --bin DIR

Exits with 77, saying why, where there can be none.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import ctest
import network

BIN = None
DATA = None
OWN_MODEL = pathlib.Path(__file__).resolve().parents[1] / "python/own_model.py"
NETWORK = pathlib.Path(__file__).resolve().parents[1] / "multiproc/small_mlp.pbtxt"


class Job:
    """A small job, launched on the first host of a network."""

    def __init__(self, net, folder, *sets, epochs=2):
        self.net, self.folder = net, pathlib.Path(folder)
        self.output = self.folder / "out"
        self.started = None
        self.sets = [f"data.directory={DATA}", f"output.directory={self.output}", "job.seed=7",
                     "data.train_limit=1000", "data.validation_limit=200", f"job.epochs={epochs}",
                     f"network.file={NETWORK}",
                     "sync.partitions=3", "cluster.insecure=true", "checkpoint.every_epochs=1",
                     *sets]

    def command(self, *more):
        sets = [word for setting in self.sets for word in ("--set", setting)]
        return [f"{BIN}/kumo", "launch", "mnist_mlp", *sets, *more]

    def start(self, *more):
        """On the person's host, apart from this process's group as from a shell."""
        hosts = ",".join(host.address for host in self.net.hosts[1:])
        command = self.net.hosts[0].command(*self.command("--hosts", hosts, "--ssh", self.net.ssh,
                                                          *more))
        with open(self.folder / "stdout", "w") as out, open(self.folder / "stderr", "w") as err:
            self.started = subprocess.Popen(command, stdout=out, stderr=err, cwd=self.folder,
                                            start_new_session=True)
        return self.started

    def end(self):
        if self.started is not None:
            self.started.kill()
            self.started.wait()

    def said(self):
        return (self.folder / "stdout").read_text() + (self.folder / "stderr").read_text()

    def curves(self):
        """What was learned, without the times: equal jobs have equal ones, to the last bit."""
        lines = [json.loads(line) for line in (self.output / "log.jsonl").read_text().splitlines()]
        keys = ("round", "main/loss", "main/accuracy", "validation/main/loss")
        return [[line.get(key) for key in keys] for line in lines if line.get("kind") == "epoch"]

    def rounds(self):
        try:
            lines = (self.output / "log.jsonl").read_text().splitlines()
            return max(json.loads(line)["round"] for line in lines)
        except (OSError, ValueError):
            return 0


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.net = cls.enterClassContext(network.Network(3))
        cls.home, cls.alpha, cls.beta = cls.net.hosts

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="kumo-hosts-job-"))

    def job(self, *sets, **more):
        job = Job(self.net, self.folder, *sets, **more)
        self.addCleanup(job.end)
        return job

    @staticmethod
    def worker_on(host):
        """Its process; None if there is none yet. A worker that only checks is not meant."""
        for pid in host.pids():
            try:
                command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if command[0].endswith(b"kumo-worker") and b"--name" in command:
                return int(pid)
        return None

    def assert_nothing_runs(self):
        for host in self.net.hosts:
            network.wait_until(f"the end of all on {host.name}", lambda host=host: not host.pids())

    def test_two_hosts_train_what_one_machine_trains(self):
        job = self.job()
        started = job.start("--servers", "2", "--workers", "3")
        # Stopped until all have been seen: the job cannot end without it.
        network.wait_until("a worker", lambda: self.worker_on(self.beta))
        os.kill(self.worker_on(self.beta), signal.SIGSTOP)
        network.wait_until("its programs", lambda: (
            self.alpha.programs().count("kumo-worker") == 2 and
            self.alpha.programs().count("kumo-server") == 1 and
            self.beta.programs().count("kumo-server") == 1))
        self.assertEqual(self.beta.programs().count("kumo-worker"), 1)
        os.kill(self.worker_on(self.beta), signal.SIGCONT)
        self.assertEqual(started.wait(network.LIMIT_S), 0, job.said())
        self.assertIn("validation/main/accuracy", job.said())  # one view of the progress
        self.assert_nothing_runs()

        with tempfile.TemporaryDirectory() as folder:
            alone = Job(self.net, folder)
            done = subprocess.run(alone.command("--servers", "2", "--workers", "1"), cwd=folder,
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(job.curves(), alone.curves())

    def test_programs_of_worker_command_run_on_the_hosts(self):
        python = os.environ.get("KUMO_ONNX_PYTHON", sys.executable)
        if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode != 0:
            self.skipTest(f"{python} has no numpy (KUMO_ONNX_PYTHON names one that has)")
        job = self.job(f"worker.command={python} {OWN_MODEL}", "cluster.chunk_kib=2")
        self.assertEqual(job.start("--workers", "2").wait(network.LIMIT_S), 0, job.said())
        self.assertEqual(len(job.curves()), 2)
        for worker in ("worker-0", "worker-1"):
            log = (job.output / f"logs/{worker}.stderr").read_text()
            self.assertIn("the program ends", log)
        self.assert_nothing_runs()

    def test_a_launcher_that_is_killed_leaves_nothing_and_until_then_the_page_is_on_server_0s_host(self):
        job = self.job("http.address=*:9470", epochs=100000)
        started = job.start("--workers", "2")
        network.wait_until("rounds", lambda: job.rounds() > 0)
        self.assertRegex(job.said(), r"page +http://[^:/]+:9470/")
        fetch = "import sys, urllib.request as of; print(of.urlopen(sys.argv[1]).read().decode())"
        shown = subprocess.run(
            self.home.command("env", "no_proxy=*", sys.executable, "-c", fetch,
                              f"http://{self.alpha.address}:9470/status.json"),
            capture_output=True, check=True, text=True).stdout
        self.assertEqual(json.loads(shown)["job_name"], "mnist_mlp")
        started.kill()
        started.wait()
        self.assert_nothing_runs()

    def test_ctrl_c_saves_and_the_same_command_goes_on(self):
        job = self.job(epochs=100000)
        started = job.start("--workers", "2")
        network.wait_until("rounds", lambda: job.rounds() > 0)
        os.kill(started.pid, signal.SIGINT)
        self.assertEqual(started.wait(network.LIMIT_S), 75, job.said())
        self.assertIn("which is saved: start the job again to go on from there", job.said())
        self.assert_nothing_runs()
        again = job.start("--workers", "2")
        before = job.rounds()
        network.wait_until("going on", lambda: (
            "goes on from checkpoint" in job.said() and job.rounds() > before))
        os.kill(again.pid, signal.SIGTERM)
        self.assertEqual(again.wait(network.LIMIT_S), 75, job.said())
        self.assert_nothing_runs()

    def test_a_worker_that_is_killed_is_started_again_by_name_of_its_host(self):
        job = self.job(epochs=100000)
        started = job.start("--workers", "2")
        network.wait_until("rounds", lambda: job.rounds() > 0)
        os.kill(self.worker_on(self.beta), signal.SIGKILL)
        network.wait_until("its start", lambda: "starting it again" in job.said() or
                           "started again" in job.said())
        self.assertIn(f"worker-1 on {self.beta.address} was killed by SIGKILL", job.said())
        os.kill(started.pid, signal.SIGTERM)
        self.assertEqual(started.wait(network.LIMIT_S), 75, job.said())
        self.assert_nothing_runs()

    def test_hosts_that_cannot_be_used_are_named_before_anything_starts(self):
        job = self.job()
        # Said at once, unlike where packets are lost: that takes ssh's whole timeout.
        self.home.ip("route", "add", "unreachable", self.beta.address)
        try:
            started = job.start("--workers", "2")
            self.assertEqual(started.wait(network.LIMIT_S), 75, job.said())
        finally:
            self.home.ip("route", "del", "unreachable", self.beta.address)
        self.assertIn(f"{self.beta.address} cannot be reached", job.said())
        self.assertFalse(job.output.exists())
        self.assert_nothing_runs()


def main():
    global BIN, DATA
    options = argparse.ArgumentParser()
    options.add_argument("--bin", required=True)
    BIN = pathlib.Path(options.parse_args().bin).resolve()
    why = network.missing()
    if why:
        ctest.skip(why)
    with tempfile.TemporaryDirectory(prefix="kumo-hosts-data-") as data:
        DATA = data
        subprocess.run([f"{BIN}/kumo-data", "digits", "--out", data, "--train", "1000", "--validation",
                        "200"], check=True,
                       stdout=subprocess.DEVNULL)
        ctest.run()


if __name__ == "__main__":
    main()
