#!/usr/bin/env python3
"""Jobs whose workers are Python programs (python/kumo, worker.command), with real processes.

  tests/python/worker_test.py --bin DIR      DIR: where kumo and the other programs are
"""
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

import python_jobs
from python_jobs import JAX, LIMIT, NUMPY, TORCH, JobTest, numbers, together, warm


def options(*settings):
    return [option for setting in settings for option in ("--set", setting)]


def library():
    return python_jobs.BIN.parent / "lib/kumo/libkumo_worker.so"


class NumpyTest(JobTest):
    def numpy_job(self, mode="block"):
        self.needs(NUMPY, "numpy", "KUMO_ONNX_PYTHON")
        return self.job(NUMPY, "own_model.py", [
            "job.epochs = 3", f"sync.mode = {mode}", "sync.partitions = 3", "sync.minibatch = 8",
            "sync.block = 2", "schedule.learning_rate = 0.05", "cluster.chunk_kib = 2"])

    def run_of(self, workers, case, *settings, mode="block"):
        """The job, the result of its last launch, and its output of both, with `case`."""
        job = self.numpy_job(mode)
        launched = job.launch("--workers", str(workers), *options(*settings), CASE=case)
        said = launched.stderr
        if case == "stop":
            self.ends(75, launched)
            launched = job.launch("--workers", "1", "--servers", "2", *options(*settings), CASE="")
        return job, self.ends(0, launched), said

    def test_the_weights_do_not_depend_on_workers_kills_and_stops(self):
        self.needs(NUMPY, "numpy", "KUMO_ONNX_PYTHON")
        runs = together(lambda: self.run_of(1, ""), lambda: self.run_of(3, "workers"),
                        lambda: self.run_of(2, "stop"), lambda: self.run_of(2, "bare"),
                        lambda: self.run_of(2, "again"))
        weights = [job.weights(NUMPY) for job, _, _ in runs]
        for (_, outcome, _), own in zip(runs, weights):
            self.assertLess(outcome["figures"]["validation/main/loss"], 0.1)
            self.assertEqual(own, weights[0])
        job, _, said = runs[1]
        self.assertIn("worker-0 was killed by SIGKILL", said)
        self.assertIn("OSError: the data server is away", said)
        self.assertIn("Traceback", job.log("worker-1.stderr"))
        self.assertIn("worker-0 ended with exit code 1 (crashed): OSError: the queue is closed", runs[3][2])
        self.assertIn("its program's request: leaves the job", job.log("worker-2.stderr"))
        self.assertEqual(numbers(weights[0]["frozen"]), (0, 1, 2, 3, 4))
        # Weights of float16 keep what their blocks' mean has beyond its precision.
        for half, whole in zip(numbers(weights[0]["half"]), numbers(weights[0]["whole"])):
            self.assertGreater(whole, 0.55)
            self.assertLess(abs(half - whole), 1e-6)
        self.assertEqual(numbers(weights[0]["scalar"])[0], numbers(weights[0]["half"])[0])

    def test_steps_during_an_exchange_do_not_depend_on_workers_and_stops(self):
        self.needs(NUMPY, "numpy", "KUMO_ONNX_PYTHON")
        settings = ["sync.block=6", "sync.overlap=1", "sync.fragments=2", "sync.local_share=0.25",
                    "sync.push_codec=1bit", "block.reset_local_state=false", "job.epochs=4"]
        runs = together(lambda: self.run_of(1, "", *settings), lambda: self.run_of(3, "stop", *settings))
        for _, outcome, _ in runs:
            self.assertLess(outcome["figures"]["validation/main/loss"], 2)
        self.assertEqual(*[job.weights(NUMPY) for job, _, _ in runs])

    def test_a_state_that_is_lost_during_steps_ahead_is_told_as_such(self):
        for resets in ("false", "true"):
            _, _, said = self.run_of(2, "lost", "sync.block=3", "sync.overlap=1",
                                     f"block.reset_local_state={resets}")
            self.assertIn("worker-0 was killed by SIGKILL", said)

    def test_gradients_are_stepped_on_the_servers(self):
        self.needs(NUMPY, "numpy", "KUMO_ONNX_PYTHON")
        # Two samples are left in each epoch, for three partitions.
        settings = ["optimiser.type=adamw", "sync.minibatch=11", "sync.overlap=1"]
        runs = together(*[lambda workers=workers: self.run_of(workers, "", *settings, mode="gradient")
                          for workers in (1, 2)])
        for _, outcome, _ in runs:
            self.assertLess(outcome["figures"]["validation/main/loss"], 6)
        self.assertEqual(*[job.weights(NUMPY) for job, _, _ in runs])

    def test_arrays_of_a_model(self):
        self.needs(NUMPY, "numpy", "KUMO_ONNX_PYTHON")
        self.cases(NUMPY, "array_model_cases.py")

    def test_mistakes_end_the_job_with_their_reason(self):
        self.needs(NUMPY, "numpy", "KUMO_ONNX_PYTHON")
        mistakes = {
            "samples": "other data: training samples are 20",
            "early": "8 of 16 samples were reported; go through all minibatches()",
            "shape": "tensor layer.weight is of shape [9], but was of shape [8]",
            "nan": "tensor layer.weight has become infinite or not a number",
            "loss": "loss is nan in minibatch 0",
            "vector": "add(loss=...) got an array of shape [8]; give its mean over the 8 samples",
            "frozen": "partition 0: tensor frozen has been changed, but is frozen; leave it out of `frozen`",
            "unmoved": ": no trained weight has changed; change the arrays in place",
            "clipped": "partition 0: tensor layer.bias has been changed, but in gradient mode the servers step",
            "gone": "the model has the tensors layer.weight, layer.bias, frozen, half, whole, scalar, but had",
            "fork": "forked from the process that opened the Worker",
            "second": "this process has a worker already",
            "infinite": "tensor mean begins with numbers that are not finite",
            "left": "the loop over blocks() was left before the job is complete; to leave without loss, call",
            "no_evaluation": "call blocks(evaluate) with a function",
            "share": "partition 0: accuracy is 7 on average, but of a share",
            "best": "checkpoint.best = top1, but it is unknown whether more of top1 is better; declare",
            "idle": "worker-0 ended without having taken part in the job; does the program of worker.command",
            "closed": "worker-0 ended without having taken part in the job",
            # The worker that is refused is the second one to come.
            "swallowed": " ended without having taken part in the job; does the program of worker.command"}

        def run(case):
            job = self.numpy_job("gradient" if case == "clipped" else "block")
            workers = "2" if case in ("samples", "swallowed") else "1"
            return job, job.launch("--workers", workers, "--max-restarts", "0", CASE=case)
        for (case, words), (job, launched) in zip(
                mistakes.items(), together(*[lambda case=case: run(case) for case in mistakes])):
            with self.subTest(case=case):
                said = launched.stdout + launched.stderr
                self.assertEqual(launched.returncode, 78, said)
                self.assertIn(words, said + (job.log("worker-0.stderr") if case == "fork" else ""))
                if case == "swallowed":
                    name = re.search(r"logs/(worker-[01].stderr) of the output folder", said)[1]
                    self.assertRegex(job.log(name), "ended before the job: .*other data: training samples are 20")
        checked = subprocess.run([python_jobs.BIN / "kumo", "check", "job.conf"], cwd=self.numpy_job().folder,
                                 text=True, capture_output=True)
        self.assertRegex(checked.stdout, r"cluster.join_timeout_s +600 seconds +worker.command")
        job = self.job("no-such-python", "own_model.py", [])
        launched = job.launch()
        self.assertEqual(launched.returncode, 78, launched.stdout + launched.stderr)
        self.assertIn("no-such-python is in no folder of PATH", launched.stdout + launched.stderr)

    def threads_program(self, end):
        """Runs a program whose thread goes through the loop of a worker, while the main thread does `end`. No
        server listens, so that the loop waits for work. Returns the ended process."""
        job = self.numpy_job()
        program = f"""
import os, sys, threading, time
sys.setswitchinterval(1e-5)
import kumo, numpy
def count():
    return len(os.listdir("/proc/self/task"))
before = count()
def check_threads():
    until = time.monotonic() + 5  # the system may count an ended thread for a moment
    while count() != before and time.monotonic() < until:
        time.sleep(0.01)
    assert count() == before, (before, count())
model = kumo.ArrayModel({{"weight": numpy.zeros(3, numpy.float32)}})
def opened():
    return kumo.Worker("job.conf", model, train_samples=100,
                       settings=["cluster.servers=tcp://127.0.0.1:{self.port()}"])
worker = opened()
def train():
    for _ in worker.blocks():
        pass
thread = threading.Thread(target=train, daemon=True)
thread.start()
time.sleep(0.3)
{end}
"""
        return subprocess.run([NUMPY, "-c", program], cwd=job.folder, text=True, capture_output=True,
                              timeout=LIMIT, env=python_jobs.environment())

    def test_a_worker_is_closed_while_another_thread_is_in_its_loop(self):
        self.needs(NUMPY, "numpy", "KUMO_ONNX_PYTHON")
        ends = {"the interpreter's end": "", "close": "worker.close(); thread.join(); check_threads()",
                "a second loop":
                    "other = threading.Thread(target=train, daemon=True); other.start()\n"
                    "while thread.is_alive() and other.is_alive(): time.sleep(0.01)\n"
                    "worker.close(); thread.join(); other.join(); check_threads()",
                "two threads that close":
                    "other = threading.Thread(target=worker.close); other.start(); worker.close(); "
                    "opened().close(); thread.join(); other.join(); "
                    "check_threads()",
                "leave": "worker.leave(); thread.join(); worker.close(); check_threads()"}
        closed = "kumo.KumoError: the worker was closed while its loop"
        # The interpreter's end may cut the traceback of a daemon thread off.
        words = {"a second loop": "kumo.KumoError: another thread is in a call about this worker", "leave": "",
                 "the interpreter's end": ""}
        for (end, _), done in zip(ends.items(), together(
                *[lambda code=code: self.threads_program(code) for code in ends.values()])):
            with self.subTest(end=end):
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(words.get(end, closed), done.stderr)
                self.assertNotIn("terminate called", done.stderr)

    def test_memory_that_runs_short_ends_the_worker_with_an_error(self):
        launched = self.numpy_job().launch("--workers", "1", "--max-restarts", "0", CASE="memory")
        self.assertIn("there is not enough memory", launched.stderr)
        self.assertEqual(launched.returncode, 75, launched.stderr)

    def test_a_script_on_another_host_that_takes_no_part_ends_the_job(self):
        """With a stand-in for ssh, which runs its command on this machine."""
        job = self.numpy_job()
        ssh = job.folder / "ssh"
        ssh.write_text('#!/bin/sh\nfor command; do :; done\nexec sh -c "$command"\n')
        ssh.chmod(0o755)
        port = self.port()
        on_host = ["--workers", "1", "--hosts", "127.0.0.1", "--ssh", str(ssh), "--port", str(port),
                   "--set", "cluster.insecure=true"]
        launched = job.launch(*on_host, CASE="idle")
        self.assertEqual(launched.returncode, 78, launched.stdout + launched.stderr)
        self.assertIn("worker-0 on 127.0.0.1 ended without having taken part in the job", launched.stderr)
        self.ends(0, job.launch(*on_host, CASE=""))

    def test_kumo_worker_becomes_the_program_and_leaves_it_when_told_to(self):
        """As in a pod: a server and a worker with a page, which are started one by one."""
        job = self.numpy_job()
        server = f"ipc://{job.folder}/server"
        settings = ["--set", f"cluster.servers={server}", "--set", "cluster.workers=1"]

        def start(program, *arguments, **environment):
            process = subprocess.Popen([python_jobs.BIN / program, "job.conf", *settings, *arguments],
                                       cwd=job.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                       env={**os.environ, **environment})
            self.addCleanup(process.wait)
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.kill)
            return process

        def page(path):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=LIMIT) as answer:
                    return answer.read().decode()
            except urllib.error.URLError:
                return ""

        port = self.port()
        start("kumo-server", "--index", "0", "--bind", server)
        worker = start("kumo-worker", "--name", "worker-0", "--http", f"127.0.0.1:{port}", CASE="wait")
        until = time.monotonic() + LIMIT
        while not (job.folder / "waits-worker-0").exists() and time.monotonic() < until:
            self.assertIsNone(worker.poll(), worker)
            time.sleep(0.02)
        while "ready" not in page("/readyz") and time.monotonic() < until:
            time.sleep(0.02)
        self.assertIn("kumo_", page("/metrics"))
        worker.terminate()
        (job.folder / "go").touch()
        _, words = worker.communicate(timeout=LIMIT)
        self.assertEqual(worker.returncode, 75, words)
        self.assertIn("has left the job after SIGTERM", words)
        again = start("kumo-worker", "--name", "worker-0", CASE="")
        _, words = again.communicate(timeout=LIMIT)
        self.assertEqual(again.returncode, 0, words)
        self.assertIn("the program ends", words)

    def test_a_notebook_is_interrupted_goes_on_and_opens_its_worker_again(self):
        self.needs(NUMPY, "numpy", "KUMO_ONNX_PYTHON")

        def run(*cells):
            job = self.job(NUMPY, "notebook_cells.py", ["job.epochs = 4", "sync.partitions = 1",
                                                        "sync.minibatch = 8", "sync.block = 3"])
            server = f"ipc://{job.folder}/server"
            with open(job.folder / "job.conf", "a") as conf:
                conf.write(f"[cluster]\nservers = {server}\nworkers = 1\n")
            process = subprocess.Popen([python_jobs.BIN / "kumo-server", "job.conf", "--index", "0", "--bind", server],
                                       cwd=job.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            done = subprocess.run([NUMPY, python_jobs.HERE / "notebook_cells.py", *cells], cwd=job.folder, text=True,
                                  capture_output=True, env=python_jobs.environment(), timeout=LIMIT)
            self.assertEqual(process.wait(LIMIT), 0, done.stdout + done.stderr)
            return job.weights(NUMPY), done.stdout.splitlines()
        whole, _ = run("open", "train", "close")
        parts, said = run("open", "interrupt", "go-on", "close", "close", "open", "train", "close")
        self.assertEqual(said, ["open ok", "interrupt KeyboardInterrupt ", "go-on ok", "close ok", "close ok", "open ok",
                                "train ok", "close ok"])
        self.assertEqual(whole, parts)

    def test_weights_are_written_into_files(self):
        job, _, _ = self.run_of(1, "", "job.epochs=1")
        job.python(NUMPY, "import kumo; kumo.export('out', 'weights.npz'); "
                          "print(kumo.export('out', 'weights.safetensors'))")
        # As numpy reads the one, and kumo the other.
        self.assertEqual(job.python(NUMPY, (
            "import kumo, numpy; stored = numpy.load('weights.npz'); own = kumo.load_state_dict('out'); "
            "print(all((stored[name] == own[name]).all() for name in own), len(stored.files) == len(own))")),
            "True True\n")
        # The folders of jobs lie side by side.
        one, two, three = (
            self.run_of(1, case, f"network.initial_weights={start}", "schedule.learning_rate=0.01")[0]
            .weights(NUMPY) for case, start in (("", job.folder / "weights.safetensors"),
                                                ("elsewhere", f"../{job.folder.name}/out"),
                                                ("leaves", f"../{job.folder.name}/out")))
        self.assertEqual(one, two)
        self.assertEqual(one, three)


class LibraryTest(JobTest):
    """The library and the package in a program that does nothing else with them."""

    def run_in(self, python, program):
        done = subprocess.run([python, "-c", program], text=True, capture_output=True, timeout=LIMIT,
                              env=python_jobs.environment())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_library_exports_the_functions_of_its_header_and_no_others(self):
        if not shutil.which("nm"):
            self.skipTest("there is no nm")
        listed = subprocess.run(["nm", "-D", "--defined-only", library()], text=True, capture_output=True, check=True)
        header = python_jobs.HERE.parents[1] / "worker/library/kumo_worker.h"
        declared = re.findall(r"^[a-z].*?\b(kumo_\w+)\(", header.read_text(), re.MULTILINE)
        self.assertGreater(len(declared), 20)
        self.assertEqual(sorted(line.split()[-1] for line in listed.stdout.splitlines()), sorted(declared))

    def test_the_library_starts_no_thread_and_handles_no_signal_until_a_worker_is_open(self):
        state = """
import ctypes, os, time
def state():
    lines = open("/proc/self/status").read().splitlines()
    return [line for line in lines if line.startswith(("Threads:", "SigBlk:", "SigIgn:", "SigCgt:"))]
"""
        self.run_in(sys.executable, f"""{state}
before = state()
ctypes.CDLL({str(library())!r}).kumo_error()
assert state() == before, (before, state())
""")
        self.needs(NUMPY, "numpy", "KUMO_ONNX_PYTHON")
        job = self.job(NUMPY, "own_model.py", [])
        self.run_in(NUMPY, f"""{state}
import numpy
before = state()
import kumo
assert state() == before, (before, state())
os.chdir({str(job.folder)!r})
worker = kumo.Worker("job.conf", {{"weight": numpy.zeros(3, numpy.float32)}}, train_samples=100,
                     settings=["cluster.servers=tcp://127.0.0.1:{self.port()}"])
opened = state()
assert opened[1:] == before[1:] and opened[0] != before[0], (before, opened)
worker.close()
until = time.monotonic() + 5  # the system may count an ended thread for a moment
while state() != before and time.monotonic() < until:
    time.sleep(0.01)
assert state() == before, (before, state())
""")

    def test_the_package_imports_neither_torch_nor_jax(self):
        for python, module in ((TORCH, "torch"), (JAX, "jax"), (NUMPY, "numpy")):
            with self.subTest(module=module):
                self.needs(python, f"numpy, {module}", "one of KUMO_TORCH_PYTHON, KUMO_JAX_PYTHON, KUMO_ONNX_PYTHON")
                self.run_in(python, "import sys, kumo; "
                                    "assert not {'torch', 'jax', 'jaxlib'} & set(sys.modules), list(sys.modules)")


class TorchTest(JobTest):
    def torch_job(self, program, settings):
        self.needs(TORCH, "torch", "KUMO_TORCH_PYTHON")
        return self.job(warm(TORCH, "torch"), program, settings)

    def test_a_torch_models_weights_do_not_depend_on_workers_kills_and_stops(self):
        self.needs(TORCH, "torch", "KUMO_TORCH_PYTHON")

        def run(workers, case, *settings):
            job = self.torch_job("own_torch_model.py", [
                "job.epochs = 3", "sync.partitions = 3", "sync.minibatch = 8", "sync.block = 3",
                "sync.overlap = 1", "sync.push_codec = 1bit", "block.rule = average",
                "block.reset_local_state = false", "optimiser.type = adamw", "cluster.chunk_kib = 2"])
            launched = job.launch("--workers", str(workers), *settings, CASE=case)
            if case == "stop":
                self.ends(75, launched)
                launched = job.launch("--workers", "2", CASE="")
            if case == "kills":  # the code 247 is SIGKILL's, as warm_python.py hands it on
                self.assertIn("worker-0 ended with exit code 247", launched.stderr)
                self.assertIn("server-1 was killed by SIGKILL", launched.stderr)
            self.ends(0, launched)
            return job.weights(TORCH)
        one, three, stopped, killed = together(
            lambda: run(1, ""), lambda: run(3, ""), lambda: run(2, "stop"),
            lambda: run(2, "kills", "--servers", "2", *options("cluster.replicas=2", "cluster.recovery=exact")))
        self.assertEqual(one, three)
        self.assertEqual(one, stopped)
        self.assertEqual(one, killed)
        self.assertEqual(list(one), [
            "first.weight", "first.bias", "norm.weight", "norm.bias", "second.bias", "frozen.weight",
            "frozen.bias", "narrow.weight", "narrow.bias", "last.weight", "last.bias", "seen",
            "norm.running_mean", "norm.running_var"])

    def test_state_in_an_optimizers_groups_does_not_go_from_block_to_block(self):
        self.needs(TORCH, "torch", "KUMO_TORCH_PYTHON")

        def run(workers):
            job = self.torch_job("own_torch_model.py", [
                "job.epochs = 2", "sync.partitions = 3", "sync.minibatch = 8", "sync.block = 3"])
            self.ends(0, job.launch("--workers", str(workers), CASE="slowing"))
            return job.weights(TORCH)
        self.assertEqual(*together(lambda: run(1), lambda: run(3)))

    def test_gradients_do_not_depend_on_the_programs_optimizer(self):
        """Neither in gradient mode nor in the warm-up of block mode."""
        self.needs(TORCH, "torch", "KUMO_TORCH_PYTHON")

        def run(case, *settings):
            job = self.torch_job("own_torch_model.py", [
                "job.epochs = 1", "sync.partitions = 2", "sync.minibatch = 8", "optimiser.type = momentum",
                "schedule.learning_rate = 0.05", *settings])
            self.ends(0, job.launch("--workers", "1", CASE=case))
            return job.weights(TORCH)
        for settings in (["sync.mode = gradient"], ["sync.block = 2", "sync.warmup_samples = 100000"]):
            with self.subTest(settings=settings):
                self.assertEqual(*together(*[lambda case=case: run(case, *settings) for case in ("", "nesterov")]))

    def test_modules_and_their_optimizers(self):
        self.needs(TORCH, "torch", "KUMO_TORCH_PYTHON")
        self.cases(warm(TORCH, "torch"), "torch_model_cases.py")

    def test_mistakes_with_torch(self):
        self.needs(TORCH, "torch", "KUMO_TORCH_PYTHON")
        gradient = ["sync.mode = gradient", "sync.partitions = 1", "sync.minibatch = 8"]
        mistakes = {
            "late_zero_grad": (gradient, "call zero_grad() before backward(), not after step()"),
            "replaced": (gradient, "tensor first.bias of the model has been replaced since the Worker was"),
            "no_step": ([], ": no trained weight has changed; call optimizer.step()"),
            "clipped": (["sync.warmup_samples = 100", *gradient[1:]],
                        "partition 0: tensor first.weight has been changed, but in gradient mode the servers step"),
            "own_step": (gradient, "tensor first.weight has been changed, but in gradient mode the servers step"),
            "others": (gradient, "the optimizer steps 9 parameters that the model does not have"),
            "moved": ([], "partition 0: tensor frozen.bias has been changed, but is frozen: it did not require"),
            "target": (gradient, "partition 0: tensor narrow.weight has been changed, but is frozen: the optim"),
            "unfrozen": ([], "parameter frozen.weight requires a gradient now, but is frozen: it did not"),
            "loader": (gradient, "forked from the process that opened the Worker"),
            "nadam": (["block.reset_local_state = false"], "mu_product in the state of NAdam is neither"),
            "slowing": (["block.reset_local_state = false", "optimiser.type = adamw"],
                        "cannot be carried: its steps change count in the param_groups of Slowing"),
            "sgd": (["block.reset_local_state = false", "optimiser.type = sgd"],
                    "optimiser.type carries 0 arrays for each weight, but the optimizer of this program has 2"),
            # optimiser.type = momentum
            "": (["block.reset_local_state = false"], "optimiser.type carries 1 arrays")}

        def run(case):
            job = self.torch_job("own_torch_model.py", mistakes[case][0])
            return job, job.launch("--workers", "1", "--max-restarts", "0", CASE=case)
        for (case, (_, words)), (job, launched) in zip(
                mistakes.items(), together(*[lambda case=case: run(case) for case in mistakes])):
            with self.subTest(case=case):
                self.assertEqual(launched.returncode, 78, launched.stdout + launched.stderr)
                self.assertIn(words, launched.stderr + job.log("worker-0.stderr"))

    def test_lenet_has_the_weights_that_kumos_own_network_has(self):
        """The example with drawn digits, beside the same job of kumo-worker, and both kinds of workers in
        one job."""
        settings = ["job.epochs = 1", "sync.partitions = 2", "sync.minibatch = 16", "sync.block = 4",
                    "sync.overlap = 1", "sync.fragments = 2", "sync.local_share = 0.25",
                    "block.reset_local_state = false", "optimiser.type = momentum",
                    "schedule.learning_rate = 0.05", "network.initial_weights = start.npz",
                    f"network.file = {python_jobs.BIN.parent}/share/kumo/models/zoo/mnist_lenet.pbtxt"]
        examples = python_jobs.BIN.parent / "share/kumo/python/examples"
        own = self.torch_job(examples / "mnist_lenet.py", settings)
        data = self.digits(own.folder / "data")
        start = (f"import sys, numpy, torch; sys.path.insert(0, '{examples}'); import mnist_lenet; "
                 "torch.manual_seed(7); numpy.savez('start.npz', **{name: tensor.numpy() for name, tensor in "
                 "mnist_lenet.LeNet().state_dict().items()})")
        own.python(TORCH, start, KUMO_DATA=data)
        theirs = self.torch_job("", settings)
        mixed = self.torch_job("either_worker.py", settings)
        for job in (theirs, mixed):
            shutil.copy(own.folder / "start.npz", job.folder)
        launched = together(
            lambda: own.launch("--workers", "2", KUMO_DATA=data),
            lambda: theirs.launch("--workers", "1", "--set", "worker.command=", KUMO_DATA=data),
            lambda: mixed.launch("--workers", "2", KUMO_DATA=data, EXAMPLE=str(examples / "mnist_lenet.py"),
                                 KUMO_WORKER=str(python_jobs.BIN / "kumo-worker")))
        for one in launched:
            self.ends(0, one)
        mine, network, both = (job.weights(TORCH) for job in (own, theirs, mixed))
        for others in (network, both):
            self.assertEqual(list(mine), list(others))
            for name, digits in mine.items():
                pairs = list(zip(numbers(digits), numbers(others[name])))
                largest = max(abs(b) for _, b in pairs)
                self.assertLess(max(abs(a - b) for a, b in pairs) / largest, 1e-5, name)

    def test_workers_of_both_kinds_are_refused_together_if_their_tensors_differ(self):
        job = self.torch_job("either_worker.py", [
            "job.epochs = 1", "sync.partitions = 2",
            f"network.file = {python_jobs.BIN.parent}/share/kumo/models/zoo/mnist_mlp.pbtxt"])
        data = self.digits(job.folder / "data")
        example = python_jobs.BIN.parent / "share/kumo/python/examples/mnist_lenet.py"
        launched = job.launch("--workers", "2", "--max-restarts", "0", KUMO_DATA=data, EXAMPLE=str(example),
                              KUMO_WORKER=str(python_jobs.BIN / "kumo-worker"))
        self.assertEqual(launched.returncode, 78, launched.stdout + launched.stderr)
        self.assertIn("another network: tensor ", launched.stderr)


if __name__ == "__main__":
    python_jobs.main(__doc__)
