#!/usr/bin/env python3
"""The life of a run by its own manifests: what `kumo manifests` writes is rendered and played by a cluster
of the test's own (cluster.py), with pods that are deleted and drained. It ends with the bits of a run
that nobody has disturbed, of `kumo launch`.

  tests/k8s/life_test.py BUILD      BUILD: a build folder

KUMO_LIFE_LOG: a file that gets all that is printed. Exits with 77, saying so, where something is missing.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import ctest

try:
    from cluster import (USER, Cluster, Job, StatefulSet, enter_own_namespaces, scratch_folder,
                         why_not_here)
    from manifests import ROOT, find_kubectl, named, render
    sys.path.append(str(ROOT / "bench"))
    import log_messages
    from chaos import newest_weights
except ImportError as missing:
    ctest.skip(missing)

LIMIT_S = 240  # of anything that is waited for
# What a lost worker's partitions carried is computed again, so that the bits are the same however it ends.
SMALL = ["--set", "job.epochs=3", "--set", "cluster.recovery=exact"]
# Two rounds of a detector.
FEW_IMAGES = ["--set", "job.epochs=1", "--set", "data.train_limit=8", "--set", "data.validation_limit=4",
              "--set", "sync.minibatch=2"]


def data_for(folder):
    """Digits of the test's own: it mounts nothing that it has not made."""
    subprocess.run([BUILD / "bin/kumo-data", "digits", "--out", folder, "--train", "10000",
                    "--validation", "1000"], check=True, capture_output=True)
    return folder


def undisturbed_in(folder, data, experiment="mnist_lenet", settings=SMALL):
    """The name of the last checkpoint of the same job, and its weights, as `kumo launch` trains them."""
    subprocess.run([BUILD / "bin/kumo", "launch", experiment, "--servers", "2", "--workers", "2",
                    "--quiet", *settings, "--set", f"data.directory={data}", "--set",
                    f"output.directory={folder / 'undisturbed'}"], cwd=folder, check=True)
    return newest_weights(folder / "undisturbed")


class Life:
    """The run `life` in a cluster. components: of `kumo manifests --with`. settings: more of --set. claims:
    those that are there before."""

    def __init__(self, folder, data, components, settings=(), claims=(), experiment="mnist_lenet"):
        self.lines = []
        self.since = time.monotonic()
        made = {name: folder / name for name in claims}
        for claim in made.values():
            claim.mkdir()
            os.chown(claim, USER, USER)
        subprocess.run([BUILD / "bin/kumo", "manifests", experiment, "--run", "life", "--workers",
                        "2", "--servers", "2", "--with", components, "--out", "made", *SMALL, *settings,
                        "--set", "output.interval_s=0.2"], cwd=folder, check=True, capture_output=True)
        objects = render(KUBECTL, folder / "made")
        run, = named(objects, "Job", "run")["spec"]["template"]["spec"]["containers"]
        for variable in run["env"]:
            if variable["name"] == "KUMO_WORKERS_S":
                variable["value"] = "10"
        self.cluster = Cluster(objects, folder, BUILD, {"kumo-data": data, **made},
                               self.make_keys(folder / "keys"), self.say)
        self.workers = self.cluster.find(Job, "life-worker")
        self.servers = self.cluster.find(StatefulSet, "life-server")
        self.run = self.cluster.find(Job, "life-run")

    @staticmethod
    def make_keys(folder):
        """As docs/kubernetes.md makes the Secrets."""
        subprocess.run([BUILD / "bin/kumo", "keys", folder, "--servers", "2", "--shared-worker-key"],
                       check=True, capture_output=True)
        servers = [*folder.glob("server-*.key"), folder / "client.key", folder / "allow-list"]
        return {"kumo-server-keys": servers,
                "kumo-worker-keys": [folder / "worker.key", folder / "allow-list"]}

    def say(self, line):
        self.lines.append(line)
        if LOG:
            LOG.write(f"{time.monotonic() - self.since:6.1f} {line}\n")
            LOG.flush()

    def rounds(self, since=0):
        """Those that server 0 has printed of, in the lines from `since` on."""
        progress = log_messages.pattern("progress")
        found = (progress.search(line) for line in self.lines[since:] if line.startswith("life-server-0: "))
        return [int(each[1]) for each in found if each]

    def round(self, since=0):
        return max(self.rounds(since)[-1:], default=0)

    def wait_for(self, condition, what):
        try:
            self.cluster.reconcile_until(condition, what, LIMIT_S)
        except AssertionError as late:
            raise AssertionError("\n".join([str(late), *self.lines[-20:]])) from None

    def wait_for_round(self, number):
        self.wait_for(lambda: self.round() >= number or self.is_over(), f"round {number}")
        assert not self.is_over(), "\n".join(["the run was over before", *self.lines[-20:]])

    def disturb(self, what, act, *pods):
        """act() on `pods`, each a controller and an index, and the time until they all are there again,
        and server 0 prints of a later round."""
        before, begin = self.round(), time.monotonic()
        starts = {each: self.start_of(*each) for each in pods}
        self.say(f"test: {what} after round {before}")
        act()
        self.wait_for(lambda: all(self.start_of(*each) not in (None, starts[each]) for each in pods),
                      f"what comes after {what}")
        mark = len(self.lines)
        self.wait_for(lambda: self.round(mark) > before, f"a round after {what}")
        return f"{what} after round {before}: {time.monotonic() - begin:.1f} s to a later round"

    @staticmethod
    def start_of(controller, index):
        """Which start of which pod it is; None where there is none."""
        pod = controller.pods.get(index)
        return (pod.address, pod.starts) if pod else None

    def is_over(self):
        return bool(self.run.done or self.run.failed)

    def printed_by_run(self):
        return [line.split(": ", 1)[1] for line in self.lines if line.startswith("life-run-")]


class ScratchTest(unittest.TestCase):
    def test_what_is_mounted_in_it_is_not_removed(self):
        with scratch_folder() as other:
            kept = other / "kept"
            kept.write_text("another's")
            with self.assertRaisesRegex(AssertionError, "is mounted in it"):
                with scratch_folder() as folder:
                    mounted = folder / "data"
                    mounted.mkdir()
                    subprocess.run(["mount", "--bind", other, mounted], check=True)
            self.assertEqual(kept.read_text(), "another's")
            subprocess.run(["umount", mounted], check=True)
            mounted.rmdir()
            folder.rmdir()


def delete(pod):
    threading.Thread(target=pod.delete, daemon=True).start()


class LifeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(scratch_folder())
        cls.data = data_for(folder / "data")
        # Without replicas; a job with them has the same bits.
        cls.undisturbed = undisturbed_in(folder, cls.data)

    def play(self, *what, **more):
        """A life, and what it is to come to: the last checkpoint's name and the weights."""
        life = Life(self.enterContext(scratch_folder()), self.data, *what, **more)
        self.addCleanup(life.cluster.close)
        return life, self.undisturbed

    def wait_for_end(self, life):
        life.wait_for(life.is_over, "the end of the Job `run`")
        life.wait_for(lambda: not life.servers.pods, "servers scaled to 0 have left")
        self.assertFalse(life.run.failed)
        life.wait_for(lambda: life.workers.done == {0, 1}, "the workers' Job is complete")
        self.assertIn("scaled life-server to 0", life.printed_by_run())

    def test_a_worker_that_finds_no_node_does_not_outlive_the_run(self):
        life, _ = self.play("keys", settings=("--set", "job.epochs=1"))
        life.wait_for_round(1)
        life.workers.no_node.add(1)
        delete(life.workers.pods[1])
        life.wait_for(life.is_over, "the end of the Job `run`")
        life.wait_for(lambda: not life.servers.pods, "servers scaled to 0 have left")
        self.assertFalse(life.run.failed)
        self.assertEqual(life.printed_by_run()[-3:-1], ["ended life-worker", "scaled life-server to 0"])
        self.assertTrue(life.workers.complete)

    def test_a_detector_trains_from_the_archive_of_a_shared_volume(self):
        archive = pathlib.Path(os.environ.get("KUMO_DATA", "")) / "voc/bccd.tar.gz"
        if not archive.exists():
            self.skipTest("KUMO_DATA has no voc/bccd.tar.gz")
        folder = self.enterContext(scratch_folder())
        data = folder / "data"
        (data / "voc").mkdir(parents=True)
        shutil.copy(archive, data / "voc")
        detector = "bccd_ssd300_slim"
        undisturbed = undisturbed_in(folder, data, detector, FEW_IMAGES)
        life = Life(self.enterContext(scratch_folder()), data, "shared-volume,keys", FEW_IMAGES,
                    ("kumo-output",), detector)
        self.addCleanup(life.cluster.close)
        self.wait_for_end(life)
        self.assertTrue(any("validation/main/map" in line for line in life.lines), life.lines)
        self.assertTrue(newest_weights(life.cluster.claims["kumo-output"] / "life") == undisturbed, "other bits")

    def test_servers_with_volumes_of_their_own_lose_no_round_with_one(self):
        life, undisturbed = self.play("keys", settings=("--set", "cluster.replicas=2"))
        last = int(re.search(r"\d+", undisturbed[0])[0])
        servers = life.servers

        def lose(index):
            """The pod, and its volume with all that it has saved and will save."""
            life.cluster.lose(f"output-life-server-{index}")
            delete(servers.pods[index])

        for part, what, act, index in (
                (1, "server pod 0 deleted", lambda: delete(servers.pods[0]), 0),
                (2, "server pod 1 and its volume deleted", lambda: lose(1), 1),
                (4, "server pod 0 and its volume deleted", lambda: lose(0), 0)):
            life.wait_for_round(last * part // 7)
            print(life.disturb(what, act, (servers, index)), flush=True)
        self.wait_for_end(life)
        rounds = life.rounds()
        self.assertEqual(rounds, sorted(rounds), "server 0 went back")
        claim = "output-life-server-0"
        self.assertTrue(newest_weights(life.cluster.claims[claim] / "life") == undisturbed, "other bits")

    def test_deleted_and_drained_pods_change_no_bit(self):
        life, undisturbed = self.play("shared-volume,keys,final-model", claims=("kumo-output", "kumo-models"))
        last = int(re.search(r"\d+", undisturbed[0])[0])

        def drain():
            """A node with a worker and a server on it."""
            life.cluster.evict(life.workers.pods[1])
            life.cluster.evict(life.servers.pods[1])

        addresses = []
        workers, servers = life.workers, life.servers
        for part, what, act, *pods in (
                (1, "worker pod 0 deleted", lambda: delete(workers.pods[0]), (workers, 0)),
                (2, "server pod 0 deleted", lambda: delete(servers.pods[0]), (servers, 0)),
                (3, "a drain of worker 1 and server 1", drain, (workers, 1), (servers, 1)),
                (4, "worker 0 killed", lambda: workers.pods[0].process.kill(), (workers, 0)),
                (5, "server 0's container killed", lambda: servers.pods[0].process.kill(),
                 (servers, 0))):
            life.wait_for_round(last * part // 7)
            addresses.append(servers.pods[0].address)
            print(life.disturb(what, act, *pods), flush=True)
        probes = [(pod.name, kind, pod.probe(kind))
                  for pod in [*servers.pods.values(), *workers.pods.values()]
                  for kind in ("readinessProbe", "livenessProbe")]
        self.assertTrue(all(passed for *_, passed in probes), probes)
        self.wait_for_end(life)
        printed = life.printed_by_run()
        self.assertIn(f"life is done; the model is /models/life/{undisturbed[0]} on the claim "
                      "kumo-models", printed)
        self.assertTrue(any("validation" in line for line in printed), printed)
        # The Job `run` shows each line of server 0 once.
        tables = [line for line in printed if re.match(r"3 +\d", line)]
        self.assertEqual(len(tables), 1, printed)
        self.assertGreater(len(set(addresses)), 1, "server 0 came back at its old address")
        output, models = (life.cluster.claims[name] / "life" for name in ("kumo-output", "kumo-models"))
        self.assertTrue(newest_weights(output) == undisturbed, "other bits")
        model, last_one = models / undisturbed[0], output / "checkpoints" / undisturbed[0]
        self.assertEqual({file.name: file.read_bytes() for file in model.iterdir()},
                         {file.name: file.read_bytes() for file in last_one.iterdir()})


if __name__ == "__main__":
    KUBECTL, missing = find_kubectl()
    missing = missing or why_not_here()
    if missing:
        ctest.skip(missing)
    enter_own_namespaces()
    BUILD = pathlib.Path(sys.argv.pop()).resolve()
    LOG = open(os.environ["KUMO_LIFE_LOG"], "w") if "KUMO_LIFE_LOG" in os.environ else None
    ctest.run()
