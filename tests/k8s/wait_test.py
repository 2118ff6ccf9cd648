#!/usr/bin/env python3
"""k8s/base/wait.sh, the script of the Job `run`, against an API server of the test's own: it ends the run's
workers and servers, and a new pod of the Job ends as the first pod would have.

  tests/k8s/wait_test.py

The API server grants what the Role of k8s/base/run.yaml grants, and the script gets the environment of the
Job's container. Needs PyYAML, curl and jq; exits with 77, saying so, if one is missing.
"""
import collections
import datetime
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import ctest

try:
    import yaml

    from manifests import ROOT
except ImportError as missing:
    ctest.skip(missing)

LIMIT_S = 30
BASE = ROOT / "k8s/base"
RUN = {one["kind"]: one for one in yaml.safe_load_all((BASE / "run.yaml").read_text())}
DONE = "kumo-server 0: done; the model is /models/r/round-000000000007"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"  # RFC 3339
MODEL = "r is done; the model is /models/r/round-000000000007 on the claim kumo-models"


def environment_of_job(component=None):
    """Variables of the container of the Job `run`, as the base sets them and a component changes them."""
    container, = RUN["Job"]["spec"]["template"]["spec"]["containers"]
    variables = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    if component:
        file = ROOT / "k8s/components" / component / "kustomization.yaml"
        for patch in yaml.safe_load(file.read_text())["patches"]:
            changed = yaml.safe_load(patch["patch"])
            if patch.get("target", {}).get("name") == "run":
                container, = changed["spec"]["template"]["spec"]["containers"]
                variables |= {one["name"]: one["value"] for one in container["env"]}
    return {**variables, "KUMO_RUN": "r"}


def time_of(text):
    """Of a timestamp with nanoseconds (RFC 3339)."""
    return datetime.datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", text).replace("Z", "+00:00"))


def merge(changed, patch):
    """A JSON merge patch without removals."""
    for key, value in patch.items():
        if isinstance(value, dict):
            merge(changed.setdefault(key, {}), value)
        else:
            changed[key] = value


class Api:
    """The objects of the run `r`. Its server 0 has ended with `code` and these last words."""

    def __init__(self, code, words, kind_of_workers):
        state = {"terminated": {"exitCode": code, "message": words, "finishedAt": "2026-01-01T00:00:00Z"}}
        self.objects = {
            "pods/r-server-0": {
                "spec": {"containers": [{"name": "server", "volumeMounts": [
                             {"name": "models", "mountPath": "/models"}]}],
                         "volumes": [{"name": "models",
                                      "persistentVolumeClaim": {"claimName": "kumo-models"}}]},
                "status": {"containerStatuses": [{"name": "server", "state": state}]}},
            "jobs/r-run": {"metadata": {}, "status": {}},
            "statefulsets/r-server": {"spec": {"replicas": 2}}}
        if kind_of_workers == "jobs":
            self.objects["jobs/r-worker"] = {"spec": {"completions": 2, "parallelism": 2}, "status": {}}
        else:
            self.objects["statefulsets/r-worker"] = {"spec": {"replicas": 2}}
        self.log = ["2026-01-01T00:00:00.000000000Z epoch 1"]  # of server 0
        self.patched = []   # names of objects, in the order of successful changes
        self.failing = {}   # status with which a change of an object is answered, by its name
        self.failed = []    # names of objects whose change was answered so
        self.asked = collections.Counter()  # names of objects
        self.silent = {}    # number of questions about an object that get no good answer, by its name
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                api.answer(self, "get")

            def do_PATCH(self):
                api.answer(self, "patch")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def complete_workers(self):
        self.objects["jobs/r-worker"]["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}

    def answer(self, request, verb):
        found = re.fullmatch(r"/(?:api/v1|apis/(\w+)/v1)/namespaces/test/(\w+)/([\w-]+)(/\w+)?(?:\?(.*))?",
                             request.path)
        group, kind, name, rest, query = found.groups(default="")
        if not any(group in rule["apiGroups"] and kind + rest in rule["resources"] and verb in rule["verbs"]
                   for rule in RUN["Role"]["rules"]):
            return request.send_error(403)
        key = f"{kind}/{name}"
        self.asked[key] += 1
        if key not in self.objects:
            return request.send_error(404)
        if verb == "get" and self.silent.get(key, 0) > 0:
            self.silent[key] -= 1
            return request.send_error(503)
        body = json.dumps(self.objects[key])
        if rest == "/log":
            if "previous" in request.path:
                return request.send_error(400)
            since = urllib.parse.parse_qs(query).get("sinceTime", ["0001-01-01T00:00:00Z"])[0]
            if not re.fullmatch(TIME, since):
                return request.send_error(400)
            body = "".join(f"{line}\n" for line in self.log
                           if time_of(line.split()[0]) >= time_of(since).replace(microsecond=0))
        if verb == "patch":
            if key in self.failing:
                self.failed.append(key)
                return request.send_error(self.failing[key])
            self.change(key, json.loads(request.rfile.read(int(request.headers["Content-Length"]))))
        request.send_response(200)
        request.end_headers()
        request.wfile.write(body.encode())

    def change(self, key, patch):
        merge(self.objects[key], patch)
        self.patched.append(key)
        if key == "statefulsets/r-server" and patch["spec"]["replicas"] == 0:
            self.objects.pop("pods/r-server-0", None)


class WaitTest(unittest.TestCase):
    def begin(self, code, words, component=None):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for file, text in (("namespace", "test"), ("token", "secret"), ("ca.crt", "")):
            (self.folder / file).write_text(text)
        self.api = Api(code, words, "statefulsets" if component else "jobs")
        self.addCleanup(self.api.close)
        self.environment = environment_of_job(component)

    def start(self, **variables):
        """A pod of the Job."""
        pod = subprocess.Popen(
            ["sh", BASE / "wait.sh"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
            env={**os.environ, "no_proxy": "*", "KUMO_API": self.api.address,
                 "KUMO_ACCOUNT": str(self.folder), "KUMO_PAUSE_S": "0.1",
                 "KUMO_TERMINATION_LOG": str(self.folder / "last-words"), **self.environment,
                 **variables})
        self.addCleanup(self.lose, pod)
        return pod

    @staticmethod
    def lose(pod):
        if pod.poll() is None:
            os.killpg(pod.pid, 9)
            pod.wait()
        pod.stdout.close()

    def end_of(self, pod):
        """Exit code, output, and last words."""
        try:
            printed, _ = pod.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(pod.pid, 9)
            self.fail(f"the pod does not end: {pod.stdout.read()[-2000:]}")
        return pod.returncode, printed, (self.folder / "last-words").read_text().strip()

    @staticmethod
    def follow(pod):
        """Lines that the pod prints; the list grows."""
        lines = []
        threading.Thread(target=lambda: lines.extend(line.rstrip("\n") for line in pod.stdout),
                         daemon=True).start()
        return lines

    def wait_until(self, condition, what):
        end = time.monotonic() + LIMIT_S
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.02)

    def test_workers_of_a_run_that_is_done_end_by_themselves(self):
        self.begin(0, DONE)
        threading.Timer(1, self.api.complete_workers).start()
        code, printed, words = self.end_of(self.start())
        self.assertEqual((code, words), (0, MODEL), printed)
        self.assertIn("\nepoch 1\n", printed)
        self.assertEqual(self.api.patched, ["jobs/r-run", "statefulsets/r-server"], printed)
        self.assertEqual(self.api.objects["statefulsets/r-server"]["spec"], {"replicas": 0})

    def test_each_line_is_shown_once_whatever_the_time_zones_of_nodes(self):
        self.begin(0, DONE)
        server = self.api.objects["pods/r-server-0"]
        ended = server["status"].pop("containerStatuses")
        self.api.log = ["2026-10-25T02:59:58.100000000+02:00 epoch 1", "2026-10-25T02:59:58.200000000+02:00 2"]
        pod = self.start()
        shown = self.follow(pod)
        self.wait_until(lambda: "2" in shown, "the first lines")
        # The clocks go back, then the pod moves to nodes west of Greenwich and in UTC.
        for time, line in (("2026-10-25T02:59:58.300000000+02:00", "3"),
                           ("2026-10-25T02:00:01.000000000+01:00", "4"),
                           ("2026-10-24T19:30:02.500000000-05:30", "5"),
                           ("2026-10-25T01:00:03.000000000Z", "6")):
            self.api.log.append(f"{time} {line}")
            self.wait_until(lambda: line in shown, f"line {line}: {shown}")
        server["status"]["containerStatuses"] = ended
        self.api.complete_workers()
        self.assertEqual(pod.wait(LIMIT_S), 0)
        self.assertEqual([line for line in shown if re.fullmatch(r"epoch 1|\d", line)],
                         ["epoch 1", "2", "3", "4", "5", "6"])

    def test_a_worker_that_waits_in_vain_is_ended_with_the_run(self):
        self.begin(0, DONE)
        self.api.silent = {"pods/r-server-0": 1, "jobs/r-worker": 2}
        code, printed, words = self.end_of(self.start(KUMO_WORKERS_S="1"))
        self.assertEqual((code, words), (0, MODEL), printed)
        self.assertEqual(self.api.objects["jobs/r-worker"]["spec"], {"completions": 0, "parallelism": 0})
        self.assertEqual(self.api.patched, ["jobs/r-run", "jobs/r-worker", "statefulsets/r-server"])
        self.assertIn("\nended r-worker", printed)

    def test_workers_of_a_run_that_has_failed_are_ended_at_once(self):
        self.begin(78, "kumo-server 0: data.classes = 12")
        code, printed, words = self.end_of(self.start())
        self.assertEqual((code, words), (78, "r has failed: kumo-server 0: data.classes = 12"), printed)
        self.assertEqual(self.api.objects["jobs/r-worker"]["spec"], {"completions": 0, "parallelism": 0})

    def test_workers_of_a_statefulset_are_scaled_before_the_servers(self):
        self.begin(0, DONE, "workers-statefulset")
        code, printed, _ = self.end_of(self.start())
        self.assertEqual(code, 0, printed)
        self.assertEqual(self.api.patched, ["jobs/r-run", "statefulsets/r-worker", "statefulsets/r-server"])

    def fail_pod(self, name, code, words, statuses="containerStatuses"):
        """The pod's container has ended so, and is started again for ever."""
        state = {"state": {"waiting": {"reason": "CrashLoopBackOff"}},
                 "lastState": {"terminated": {"exitCode": code, "message": words}}}
        self.api.objects[f"pods/{name}"] = {"metadata": {"name": name}, "status": {statuses: [state]}}

    def test_a_pod_of_a_statefulset_whose_new_starts_are_in_vain_ends_the_run(self):
        for pod, component, statuses in (("r-worker-1", "workers-statefulset", "containerStatuses"),
                                         ("r-worker-0", "workers-statefulset", "initContainerStatuses"),
                                         ("r-server-1", None, "containerStatuses")):
            for code in (64, 78):
                self.begin(75, "waits for workers", component)
                self.fail_pod(pod, code, "reading\nkumo: no data\n", statuses)
                ended, printed, words = self.end_of(self.start())
                reason = f"r has failed: {pod} ended with exit code {code}: kumo: no data"
                self.assertEqual((ended, words), (code, reason), printed)
                self.assertEqual(self.api.objects["statefulsets/r-server"]["spec"], {"replicas": 0})

    def test_a_pod_of_a_statefulset_that_a_new_start_mends_does_not_end_the_run(self):
        self.begin(75, "waits for workers", "workers-statefulset")
        self.fail_pod("r-worker-0", 75, "told to leave")
        self.fail_pod("r-worker-1", 137, "")
        self.fail_pod("r-worker-2", 78, "of a run of more workers")
        pod = self.start()
        self.wait_until(lambda: self.api.asked["pods/r-worker-1"] > 1, "two looks at the workers")
        self.assertIsNone(pod.poll())
        self.assertNotIn("pods/r-worker-2", self.api.asked)

    def test_a_pod_that_is_lost_while_it_ends_the_run_is_replaced(self):
        self.begin(0, DONE, "workers-statefulset")
        self.api.failing["statefulsets/r-worker"] = 503
        pod = self.start()
        self.wait_until(lambda: self.api.failed, "a change of the workers")
        self.lose(pod)
        self.api.failing.clear()
        code, printed, words = self.end_of(self.start())
        self.assertEqual((code, words), (0, MODEL), printed)
        for name in ("worker", "server"):
            self.assertEqual(self.api.objects[f"statefulsets/r-{name}"]["spec"], {"replicas": 0})

    def test_a_pod_whose_end_is_lost_is_replaced_by_one_that_ends_the_same_way(self):
        for server, words, expected in ((0, DONE, (0, MODEL)),
                                        (78, 'no "data"', (78, 'r has failed: no "data"'))):
            self.begin(server, words)
            self.api.complete_workers()
            self.end_of(self.start())
            self.assertNotIn("pods/r-server-0", self.api.objects)
            code, printed, last = self.end_of(self.start())
            self.assertEqual((code, last), expected, printed)

    def test_objects_that_are_gone_or_refuse_the_change_do_not_keep_a_run_from_its_end(self):
        self.begin(78, "no data")
        del self.api.objects["statefulsets/r-server"], self.api.objects["jobs/r-worker"]
        code, printed, _ = self.end_of(self.start())
        self.assertEqual(code, 78, printed)
        self.begin(78, "no data")
        self.api.failing["jobs/r-worker"] = 422
        code, printed, _ = self.end_of(self.start())
        self.assertEqual(code, 78, printed)
        self.assertEqual(self.api.objects["statefulsets/r-server"]["spec"], {"replicas": 0})


if __name__ == "__main__":
    missing = [tool for tool in ("curl", "jq") if not shutil.which(tool)]
    if missing:
        ctest.skip(f"{missing[0]} is missing")
    ctest.run()
