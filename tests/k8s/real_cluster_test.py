#!/usr/bin/env python3
"""The life of runs on a real Kubernetes: what `kumo manifests` writes for mnist_lenet is applied; pods are
deleted, a node is drained; the run's Job ends with 0, and the final model has the bits of a run on the same
cluster that nobody has disturbed. Prints a table of times.

  tests/k8s/real_cluster_test.py [RealClusterTest.TEST ...] BUILD      BUILD: a build folder

A test for each way to run: workers of a Job; keys, workers of a StatefulSet and staged data; servers with
volumes of their own; the overlay for one node.

KUMO_TEST_CLUSTER=1: the cluster of KUBECONFIG is for tests; without it nothing is asked of any cluster.
KUBECONFIG: the cluster. Its default storage class must give ReadWriteMany volumes, and its nodes must
compute the same bits; a drain wants two of them.
KUMO_TEST_IMAGE: the image, as the nodes know it (k8s/Dockerfile).
KUMO_DATA: where MNIST is, which is copied to the cluster; without it digits are drawn there.
KUMO_TEST_CPU: the CPUs that each pod asks for (default: 200m).
Everything is in a namespace of the test's own, which is removed at the end. A drained node is given back.
Exits with 77, saying so, where something is missing.
"""
import contextlib
import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import ctest

try:
    from manifests import ROOT, find_kubectl
    sys.path.append(str(ROOT / "bench"))
    import log_messages
    from chaos import newest_weights
except ImportError as missing:
    ctest.skip(missing)

LIMIT_S = 300  # of anything that is waited for
LOOK_S = 0.3   # between two looks
SHELF = "kumo-shelf"
# Some 260 short rounds. What a lost worker's partitions carried is computed again, so that the bits are the
# same however it ends.
SMALL = {"job.epochs": 24, "data.train_limit": 12800, "data.validation_limit": 1000, "sync.block": 10,
         "sync.warmup_samples": 2560, "checkpoint.every_rounds": 5, "cluster.recovery": "exact",
         "output.interval_s": 0.2}


class Cluster:
    """A namespace of its own in the cluster of KUBECONFIG."""

    def __init__(self):
        self.namespace = f"kumo-test-{secrets.token_hex(4)}"

    def __enter__(self):
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": self.namespace, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
        return self

    def __exit__(self, *_):
        subprocess.run([KUBECTL, "delete", "namespace", self.namespace, f"--timeout={LIMIT_S}s"],
                       check=True, capture_output=True)

    def ask(self, *words, **options):
        """What kubectl prints, as bytes; an AssertionError with its last words where it fails."""
        ended = subprocess.run([KUBECTL, "--namespace", self.namespace, *words], capture_output=True,
                               timeout=LIMIT_S, **options)
        if ended.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(words)}: {ended.stderr.decode()}")
        return ended.stdout

    def apply(self, described):
        self.ask("apply", "-f", "-", input=json.dumps(described).encode())

    def get(self, *words):
        return json.loads(self.ask("get", *words, "--output", "json"))

    def on_shelf(self, script):
        return self.ask("exec", SHELF, "--", "sh", "-euc", script)

    def fill(self, folder):
        """What outlives runs, with MNIST in `kumo-data`, as docs/kubernetes.md makes it."""
        self.ask("apply", "-k", with_image(folder, "volumes"))
        self.ask("wait", "--for=condition=Ready", f"pod/{SHELF}", f"--timeout={LIMIT_S}s")
        mnist = pathlib.Path(os.environ.get("KUMO_DATA", "/nowhere")) / "mnist"
        if not mnist.is_dir():
            self.on_shelf("kumo-data digits --out /data --train 12800 --validation 1000")
            return "drawn digits"
        self.ask("cp", mnist, f"{SHELF}:/data/mnist")
        return "MNIST"

    def make_keys(self, folder):
        """As docs/kubernetes.md makes the Secrets."""
        subprocess.run([BUILD / "bin/kumo", "keys", folder, "--servers", "2", "--shared-worker-key"],
                       check=True, capture_output=True)
        for role, files in (("server", ["server-0.key", "server-1.key", "client.key", "allow-list"]),
                            ("worker", ["worker.key", "allow-list"])):
            self.ask("create", "secret", "generic", f"kumo-{role}-keys",
                     *[f"--from-file={folder / file}" for file in files])

    def model(self, run, folder):
        """Round and weights of the run's final model; `folder` gets a copy of it."""
        self.ask("cp", f"{SHELF}:/models/{run}", folder / run / "checkpoints")
        return newest_weights(folder / run)


def with_image(folder, name):
    """A folder for `kubectl apply -k`: `name` of k8s/ with the image that the nodes have."""
    shutil.copytree(ROOT / "k8s", folder / "k8s", dirs_exist_ok=True)
    overlay = folder / f"{name.replace('/', '-')}-with-image"
    overlay.mkdir()
    image, _, tag = IMAGE.rpartition(":")
    (overlay / "kustomization.yaml").write_text(json.dumps({
        "resources": [f"../k8s/{name}"],
        "images": [{"name": each, "newName": image, "newTag": tag}
                   for each in ("registry.example/kumo", "localhost/kumo")]}))
    return overlay


def wait_for(condition, what):
    """What condition() says as soon as it is true."""
    end = time.monotonic() + LIMIT_S
    while not (said := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"{LIMIT_S} s are over: {what}")
        time.sleep(LOOK_S)
    return said


def made_by_kumo(folder, name, *components, **more):
    """What `kumo manifests` writes of a run of 2 workers and 2 servers, with pods that ask for little."""
    made = folder / f"{name}-made"
    settings = [word for key, value in {**SMALL, **more}.items() for word in ("--set", f"{key}={value}")]
    subprocess.run([BUILD / "bin/kumo", "manifests", "mnist_lenet", "--run", name, "--workers", "2",
                    "--servers", "2", "--with", ",".join(["final-model", *components]), "--image", IMAGE,
                    "--out", made, *settings], cwd=folder, check=True, capture_output=True)
    small = folder / f"{name}-small"
    small.mkdir()
    patch = json.dumps([{"op": "replace", "value": CPU,
                         "path": "/spec/template/spec/containers/0/resources/requests/cpu"}])
    (small / "kustomization.yaml").write_text(json.dumps({
        "resources": [f"../{made.name}"],
        "patches": [{"target": {"kind": "StatefulSet|Job", "labelSelector":
                                "app.kubernetes.io/component in (server, worker)"},
                     "patch": patch}]}))
    return small


class Run:
    """One that is applied as this begins."""

    def __init__(self, cluster, name, applied):
        self.cluster, self.name = cluster, name
        self.begin = time.monotonic()
        cluster.ask("apply", "-k", applied)
        self.has_job = bool(cluster.ask("get", "job", f"{name}-worker", "--ignore-not-found"))

    def pods(self):
        """By role and index: the pods that run and have not been told to leave, as (their name, node, and
        which start of it this is)."""
        found = {}
        for pod in self.cluster.get("pods", "-l", f"app.kubernetes.io/instance={self.name}")["items"]:
            labels, status = pod["metadata"]["labels"], pod["status"]
            index = labels.get("apps.kubernetes.io/pod-index",
                               labels.get("batch.kubernetes.io/job-completion-index"))
            container, = status.get("containerStatuses") or [{}]
            if "deletionTimestamp" not in pod["metadata"] and "running" in container.get("state", {}):
                found[labels["app.kubernetes.io/component"], index] = (
                    pod["metadata"]["name"], pod["spec"]["nodeName"],
                    (pod["metadata"]["uid"], container["restartCount"]))
        return found

    def round(self):
        """The latest that server 0's present start has printed of; 0 where there is none."""
        try:
            said = self.cluster.ask("logs", f"{self.name}-server-0", "--tail=20").decode()
        except AssertionError:  # there is no such pod, or it has no container yet
            return 0
        return max(map(int, log_messages.pattern("progress").findall(said)), default=0)

    def wait_for_round(self, number):
        wait_for(lambda: self.round() >= number or self.ended(), f"{self.name}: round {number}")
        assert not self.ended(), f"{self.name} ended before round {number}: {self.printed()}"

    def ended(self):
        """The Job `run`'s condition Complete or Failed, once it has one."""
        conditions = self.cluster.get("job", f"{self.name}-run")["status"].get("conditions", [])
        return next((one for one in conditions
                     if one["type"] in ("Complete", "Failed") and one["status"] == "True"), None)

    def printed(self):
        return self.cluster.ask("logs", f"job/{self.name}-run").decode()

    def disturb(self, what, act, lost):
        """act(), and the seconds until `lost` (roles and indexes) are there again, and until server 0
        prints of a later round than any before."""
        before, starts = self.round(), self.pods()
        begin = time.monotonic()
        act()
        acted = time.monotonic() - begin

        def are_back():
            now = self.pods()
            return all(each in now and now[each][2] != starts[each][2] for each in lost)

        wait_for(lambda: are_back() or self.ended(), f"the pods after {what}")
        if self.ended():  # without a worker whose Job still backs off
            note(f"{what}, after round {before}", "the run was over before its pods were back")
            return
        back = time.monotonic() - begin
        latest = max(before, self.round())
        wait_for(lambda: self.round() > latest or self.ended(), f"a round after {what}")
        note(f"{what}, after round {before}", f"{back:.1f} s until its pods run again, "
             f"{time.monotonic() - begin:.1f} s until a round after {latest}"
             + (f"; kubectl took {acted:.1f} s" if acted > 2 else ""))

    def wait_for_end(self):
        """The run's Job is Complete, what it scales has left, the workers' Job is Complete."""
        end = wait_for(self.ended, f"the end of {self.name}")
        note(f"{self.name}: from apply to the run's Job {end['type']}",
             f"{time.monotonic() - self.begin:.1f} s")
        assert end["type"] == "Complete", f"{end}: {self.printed()}"
        since = time.monotonic()
        for role in ("server",) if self.has_job else ("server", "worker"):
            pods = f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component={role}"
            wait_for(lambda: not self.cluster.get("pods", "-l", pods)["items"], f"the {role}s have left")
            assert self.cluster.get("statefulset", f"{self.name}-{role}")["spec"]["replicas"] == 0
        note(f"{self.name}: from there until what is scaled has left", f"{time.monotonic() - since:.1f} s")
        if self.has_job:
            wait_for(lambda: self.cluster.get("job", f"{self.name}-worker")["status"].get("succeeded") == 2,
                     f"the workers' Job of {self.name}")
        printed = self.printed()
        assert re.search(rf"^{self.name} is done; the model is /models/{self.name}/round-\d+ on the claim "
                         "kumo-models$", printed, re.M), printed
        assert f"scaled {self.name}-server to 0" in printed, printed
        assert re.search(r"^24 +\d", printed, re.M), f"no table of epochs: {printed}"


def nodes(cluster):
    """Names of the nodes that take pods."""
    return [one["metadata"]["name"] for one in cluster.get("nodes")["items"]
            if not one["spec"].get("unschedulable") and any(
                each["type"] == "Ready" and each["status"] == "True"
                for each in one["status"]["conditions"])]


@contextlib.contextmanager
def drained(cluster, node, run):
    """Evicts the run's pods from the node, which takes none until this ends."""
    try:
        cluster.ask("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector",
                    f"app.kubernetes.io/instance={run},app.kubernetes.io/component in (server, worker)")
        yield
    finally:
        cluster.ask("uncordon", node)


def note(what, times):
    print(f"| {what} | {times} |", flush=True)


class RealClusterTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The cluster's namespace, and the run that nobody disturbs."""
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.cluster = cls.enterClassContext(Cluster())
        data = cls.cluster.fill(cls.folder)
        print(f"\n| {data}, {len(nodes(cls.cluster))} nodes, 2 servers, 2 workers | times |\n|---|---|")
        run = Run(cls.cluster, "calm", made_by_kumo(cls.folder, "calm", "shared-volume"))
        wait_for(lambda: len(run.pods()) == 5, "all pods run")
        note("calm: from apply to all pods running", f"{time.monotonic() - run.begin:.1f} s")
        run.wait_for_round(1)
        note("calm: from apply to the first round", f"{time.monotonic() - run.begin:.1f} s")
        run.wait_for_end()
        cls.calm = cls.cluster.model("calm", cls.folder)
        cls.last = int(re.search(r"\d+", cls.calm[0])[0])

    def delete(self, run, role):
        """The pod of that role and index 0."""
        pod = run.pods()[role, "0"][0]
        run.disturb(f"{run.name}: {role} pod 0 deleted", lambda: self.cluster.ask(
            "delete", "pod", pod, "--wait=false"), [(role, "0")])

    def drain(self, run, stack):
        """The node of server 1."""
        if len(nodes(self.cluster)) == 1:
            return note(f"{run.name}: a node drained", "not tried: there is only one")
        pods = run.pods()
        node = pods["server", "1"][1]
        lost = sorted(each for each, (_, at, _) in pods.items() if at == node and each[0] != "run")
        run.disturb(f"{run.name}: a node drained, with {', '.join(' '.join(each) for each in lost)}",
                    lambda: stack.enter_context(drained(self.cluster, node, run.name)), lost)

    def check_end(self, run):
        run.wait_for_end()
        self.assertTrue(self.cluster.model(run.name, self.folder) == self.calm, "other bits")
        note(f"{run.name}: its final model", f"{self.calm[0]}: the bits of the calm run")

    def test_deleted_and_drained_pods_change_no_bit(self):
        run = Run(self.cluster, "life", made_by_kumo(self.folder, "life", "shared-volume"))
        with contextlib.ExitStack() as stack:
            run.wait_for_round(self.last // 10)
            self.delete(run, "worker")
            run.wait_for_round(2 * self.last // 10)
            self.delete(run, "server")
            run.wait_for_round(3 * self.last // 10)
            self.drain(run, stack)
            self.check_end(run)

    def test_with_keys_and_workers_of_a_statefulset_on_staged_data(self):
        self.cluster.make_keys(self.folder / "keys")
        run = Run(self.cluster, "keyed", made_by_kumo(
            self.folder, "keyed", "shared-volume", "keys", "workers-statefulset", "stage-data"))
        with contextlib.ExitStack() as stack:
            run.wait_for_round(self.last // 10)
            self.assertIn("/data: 4 files", self.cluster.ask(
                "logs", "keyed-worker-0", "--container", "stage").decode())
            with self.assertRaisesRegex(AssertionError, "keys"):
                self.cluster.on_shelf("kumo status tcp://keyed-server-0.keyed-server:7700")
            self.delete(run, "worker")
            run.wait_for_round(2 * self.last // 10)
            self.delete(run, "server")
            run.wait_for_round(3 * self.last // 10)
            self.drain(run, stack)
            self.check_end(run)

    def test_servers_with_volumes_of_their_own_lose_one_and_then_the_other(self):
        run = Run(self.cluster, "own", made_by_kumo(self.folder, "own", "workers-statefulset",
                                                    **{"cluster.replicas": 2}))
        run.wait_for_round(self.last // 10)
        self.delete(run, "server")
        for part, index in ((2, "1"), (3, "0")):
            run.wait_for_round(part * self.last // 10)
            name = f"output-own-server-{index}"
            volume = self.cluster.get("persistentvolumeclaim", name)["spec"]["volumeName"]

            def lose():
                self.cluster.ask("delete", "persistentvolumeclaim", name, "--wait=false")
                self.cluster.ask("delete", "pod", f"own-server-{index}", "--wait=false")

            run.disturb(f"own: server {index}'s pod and volume deleted", lose, [("server", index)])
            self.assertNotEqual(
                self.cluster.get("persistentvolumeclaim", name)["spec"]["volumeName"], volume)
        self.check_end(run)

    def test_the_overlay_for_one_node_trains_and_leaves_its_volume(self):
        applied = with_image(self.folder, "overlays/local")
        run = Run(self.cluster, "local", applied)
        end = wait_for(run.ended, "the end of overlays/local")
        note(f"overlays/local: from apply to the run's Job {end['type']}",
             f"{time.monotonic() - run.begin:.1f} s")
        self.assertRegex(run.printed(), r"\nlocal is done; the model is /output/local/checkpoints/"
                         r"round-\d+ on the claim output-local-server-0\n")
        self.cluster.ask("delete", "-k", applied)
        self.assertTrue(self.cluster.get("persistentvolumeclaim", "output-local-server-0"))


if __name__ == "__main__":
    if os.environ.get("KUMO_TEST_CLUSTER") != "1":
        ctest.skip("KUMO_TEST_CLUSTER=1 does not say that the cluster of KUBECONFIG is for tests")
    unset = [name for name in ("KUBECONFIG", "KUMO_TEST_IMAGE") if not os.environ.get(name)]
    KUBECTL, missing = find_kubectl()
    if unset or missing:
        ctest.skip(missing or f"{unset[0]} is not set")
    IMAGE = os.environ["KUMO_TEST_IMAGE"]
    CPU = os.environ.get("KUMO_TEST_CPU", "200m")
    BUILD = pathlib.Path(sys.argv.pop()).resolve()
    ctest.run()
