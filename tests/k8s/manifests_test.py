#!/usr/bin/env python3
"""k8s/: every overlay, and every component over the base, renders, passes the schemas of Kubernetes, and
is what docs/kubernetes.md promises.

  tests/k8s/manifests_test.py [KUMO]     KUMO: the program, for what `kumo manifests` writes

Needs kubectl, PyYAML and kubernetes-validate; exits with 77, saying so, where one is missing.
"""
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import ctest

try:
    import kubernetes_validate
    import yaml

    from manifests import ROOT, containers_of, find_kubectl, named, pod_templates, render
except ImportError as missing:
    ctest.skip(missing)

K8S = ROOT / "k8s"
KUBECTL, NO_KUBECTL = find_kubectl()
COMPONENTS = sorted(path.name for path in (K8S / "components").iterdir())
OVERLAYS = sorted(path.name for path in (K8S / "overlays").iterdir())
KUMO = pathlib.Path(sys.argv.pop()).resolve() if len(sys.argv) > 1 else None
# What the Prometheus Operator takes of a PodMonitor, as far as it is used here: kubernetes-validate knows
# Kubernetes' own kinds alone.
POD_MONITOR = {"apiVersion": {"monitoring.coreos.com/v1"}, "kind": {"PodMonitor"},
               "metadata": {"name": str, "labels": dict},
               "spec": {"jobLabel": str, "selector": {"matchLabels": dict},
                        "podMetricsEndpoints": [{"port": str, "path": str, "interval": str}]}}
INSTANCE = "app.kubernetes.io/instance"
COMPONENT = "app.kubernetes.io/component"


def render_with(components):
    """The base with these components, under the run's name `run1`."""
    with tempfile.TemporaryDirectory(dir=ROOT) as folder:
        overlay = pathlib.Path(folder)
        (overlay / "experiment.conf").write_text("[job]\n")
        (overlay / "kustomization.yaml").write_text(yaml.safe_dump({
            "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
            "resources": ["../k8s/base"], "namePrefix": "run1-",
            "components": [f"../k8s/components/{name}" for name in components],
            "labels": [{"pairs": {INSTANCE: "run1"}, "includeSelectors": True,
                        "fields": [{"kind": "PodMonitor", "path": "spec/selector/matchLabels",
                                    "create": True}]}],
            "configMapGenerator": [{"name": "experiment", "files": ["experiment.conf"],
                                    "options": {"disableNameSuffixHash": True}}]}))
        return render(KUBECTL, overlay)


def misfit(value, shape, path=""):
    """Where `value` has another shape, and None where it has not; lists have one element at least."""
    if isinstance(shape, dict):
        if not isinstance(value, dict) or value.keys() != shape.keys():
            return f"{path}: {value}"
        found = (misfit(value[key], shape[key], f"{path}/{key}") for key in shape)
    elif isinstance(shape, list):
        if not isinstance(value, list) or not value:
            return f"{path}: {value}"
        found = (misfit(each, shape[0], f"{path}[]") for each in value)
    else:
        fits = value in shape if isinstance(shape, set) else isinstance(value, shape)
        return None if fits else f"{path}: {value}"
    return next(filter(None, found), None)


def action_of(job, container, code):
    """What a Job does about a container, or an init container, that ends with `code`."""
    for rule in job["podFailurePolicy"]["rules"]:
        exit_codes = rule.get("onExitCodes", {"values": []})
        if code in exit_codes["values"] and exit_codes.get("containerName") in (None, container["name"]):
            return rule["action"]
    return "Count"


# What `kumo manifests` is asked for.
MADE_BY_KUMO = {
    "as little as can be": ("mnist_lenet",),
    "much": ("mnist_mlp", "--run", "big", "--workers", "5", "--servers", "3", "--with",
             "gpu,spot", "--with", "shared-volume,stage-data", "--image", "host:5000/kumo:v1",
             "--set", "checkpoint.grace_s=100", "--set", "network.threads=2"),
    "volumes of their own": ("mnist_lenet", "--run", "own", "--servers", "2"),
    "a StatefulSet": ("mnist_lenet", "--run", "quick", "--workers", "4", "--with",
                      "gpu,workers-statefulset,podmonitor"),
    "a program": (ROOT / "python/examples/mnist_lenet.conf", "--run", "program", "--worker-image", "mine:2",
                  "--with", "gpu,keys"),
    "a program in a StatefulSet": (ROOT / "python/examples/mnist_lenet.conf", "--run", "program",
                                   "--worker-image", "mine:2", "--with", "workers-statefulset"),
} if KUMO else {}


def render_by_kumo(*arguments):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([KUMO, "manifests", *arguments, "--out", "made"], cwd=folder, check=True,
                       capture_output=True)
        moved = pathlib.Path(folder, "moved")
        pathlib.Path(folder, "made").rename(moved)
        return render(KUBECTL, moved)


def everything():
    """(name, objects) of all that is rendered: overlays, each component, all that go together."""
    for name in OVERLAYS:
        yield f"overlays/{name}", render(KUBECTL, K8S / "overlays" / name)
    yield "base", render_with([])
    for name in COMPONENTS:
        yield f"components/{name}", render_with([name])
    with_job = [name for name in COMPONENTS if name != "workers-statefulset"]
    yield "all components, a Job", render_with(with_job)
    for name, arguments in MADE_BY_KUMO.items():
        yield f"kumo manifests: {name}", render_by_kumo(*arguments)
    # The StatefulSet takes the Job's place first, then others change it.
    yield "all components, a StatefulSet", render_with(
        ["workers-statefulset"] + [name for name in with_job if name != "kueue"])


@unittest.skipIf(NO_KUBECTL, NO_KUBECTL)
class ManifestsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.now = ""
        cls.rendered = dict(everything())

    def each(self):
        for self.now, objects in self.rendered.items():
            yield self.now, objects

    def runs(self):
        """Those of whole runs, with an experiment."""
        for name, objects in self.each():
            if name.startswith(("overlays/", "kumo manifests: ")):
                yield objects

    def each_pod(self):
        for name, objects in self.each():
            for owner, template in pod_templates(objects):
                self.now = f"{name}: {owner['metadata']['name']}"
                yield owner, template

    def _formatMessage(self, message, standard):
        return f"{self.now}: {super()._formatMessage(message, standard)}"

    def test_all_pass_the_schemas_of_kubernetes(self):
        for _, objects in self.each():
            for one in objects:
                if one["kind"] == "PodMonitor":
                    self.assertIsNone(misfit(one, POD_MONITOR))
                else:
                    kubernetes_validate.validate(one, kubernetes_validate.latest_version(),
                                                 strict=True)

    def test_no_object_of_a_run_is_one_whose_deletion_loses_checkpoints(self):
        for _, objects in self.each():
            kinds = {one["kind"] for one in objects}
            self.assertFalse(kinds & {"Namespace", "PersistentVolumeClaim", "PersistentVolume",
                                      "StorageClass"})

    def test_the_runs_name_is_on_every_object_and_pod(self):
        for name, objects in self.each():
            runs = {one["metadata"]["labels"][INSTANCE] for one in objects}
            self.assertEqual(len(runs), 1, name)
            run, = runs
            for one in objects:
                self.assertTrue(one["metadata"]["name"].startswith(f"{run}-"), one["metadata"])
            for _, template in pod_templates(objects):
                self.assertEqual(template["metadata"]["labels"][INSTANCE], run)

    def test_every_selector_of_a_run_keeps_to_that_run(self):
        def selectors(value):
            if isinstance(value, dict):
                if "namespaceSelector" in value:
                    return  # of pods that are nobody's run
                for key, inner in value.items():
                    # Pods keep away from those of other runs too (labelSelector of an affinity).
                    if key in ("selector", "podSelector"):
                        yield inner.get("matchLabels", inner)
                    else:
                        yield from selectors(inner)
            elif isinstance(value, list):
                yield from itertools.chain.from_iterable(map(selectors, value))
        for _, objects in self.each():
            for one in objects:
                for selector in selectors(one):
                    self.assertIn(INSTANCE, selector, (one["kind"], one["metadata"]["name"]))

    def test_every_selector_finds_the_pods_of_its_component(self):
        for _, objects in self.each():
            labels = [template["metadata"]["labels"] for _, template in pod_templates(objects)]
            for one in objects:
                if one["kind"] == "PodMonitor":
                    selector = one["spec"]["selector"]["matchLabels"]
                    self.assertTrue(all(selector.items() <= each.items() for each in labels))
                selector = one["spec"].get("selector") if one["kind"] in (
                    "Service", "StatefulSet", "PodDisruptionBudget") else None
                if selector:
                    selector = selector.get("matchLabels", selector)
                    found = [each for each in labels if selector.items() <= each.items()]
                    self.assertEqual([each[COMPONENT] for each in found],
                                     [one["metadata"]["labels"][COMPONENT]])

    def test_every_name_that_an_object_uses_is_one_of_the_run_or_of_a_claim(self):
        for _, objects in self.each():
            there = {(one["kind"], one["metadata"]["name"]) for one in objects}
            for owner, template in pod_templates(objects):
                spec = template["spec"]
                for volume in spec.get("volumes", []):
                    if "configMap" in volume:
                        self.assertIn(("ConfigMap", volume["configMap"]["name"]), there)
                    if "persistentVolumeClaim" in volume:
                        self.assertIn(volume["persistentVolumeClaim"]["claimName"],
                                      ("kumo-data", "kumo-output", "kumo-models"))
                    if "secret" in volume:
                        component = owner["metadata"]["labels"][COMPONENT]
                        self.assertEqual(volume["secret"], {"secretName": f"kumo-{component}-keys",
                                                            "defaultMode": 0o440})
                if "serviceAccountName" in spec:
                    self.assertIn(("ServiceAccount", spec["serviceAccountName"]), there)
                if owner["kind"] == "StatefulSet":
                    self.assertIn(("Service", owner["spec"]["serviceName"]), there)
                volumes = {volume["name"] for volume in spec.get("volumes", [])} | {
                    claim["metadata"]["name"]
                    for claim in owner["spec"].get("volumeClaimTemplates", [])}
                mounted = {mount["name"] for container in containers_of(template)
                           for mount in container["volumeMounts"]}
                self.assertEqual(volumes, mounted)

    def test_pod_security_restricted_is_passed(self):
        for _, template in self.each_pod():
            spec = template["spec"]
            security = spec["securityContext"]
            self.assertIs(security["runAsNonRoot"], True)
            self.assertEqual(security["runAsUser"], 65532)
            self.assertEqual(security["seccompProfile"], {"type": "RuntimeDefault"})
            for forbidden in ("hostNetwork", "hostPID", "hostIPC"):
                self.assertNotIn(forbidden, spec)
            for volume in spec.get("volumes", []):
                self.assertIn(next(key for key in volume if key != "name"),
                              ("configMap", "emptyDir", "persistentVolumeClaim", "secret"))
            for container in containers_of(template):
                own = container["securityContext"]
                self.assertIs(own["allowPrivilegeEscalation"], False)
                self.assertIs(own["readOnlyRootFilesystem"], True)
                self.assertEqual(own["capabilities"], {"drop": ["ALL"]})
                self.assertFalse(own.keys() - {"allowPrivilegeEscalation", "capabilities",
                                               "readOnlyRootFilesystem"})
                self.assertNotIn("hostPort", str(container.get("ports")))

    def test_every_port_is_opened_for_ipv4_and_ipv6(self):
        for _, template in self.each_pod():
            for container in containers_of(template):
                for argument in container.get("args", []):
                    if argument.startswith(("--bind", "--http")):
                        self.assertRegex(argument, r"^--(bind=tcp://|http=)\*:[0-9]+$")

    def test_only_the_run_job_may_speak_with_the_api(self):
        for owner, template in self.each_pod():
            waits = owner["metadata"]["labels"][COMPONENT] == "run"
            self.assertEqual("serviceAccountName" in template["spec"], waits)
            self.assertEqual(template["spec"].get("automountServiceAccountToken", True), waits)

    def test_every_container_says_what_it_takes(self):
        for _, template in self.each_pod():
            for container in containers_of(template):
                self.assertLessEqual({"cpu", "memory"}, container["resources"]["requests"].keys())
                self.assertIn("memory", container["resources"]["limits"])

    def test_pods_are_given_longer_than_they_take_to_save(self):
        for owner, template in self.each_pod():
            if owner["metadata"]["labels"][COMPONENT] != "run":
                # checkpoint.grace_s is 25 s, and a process ends within 10 s of it.
                self.assertGreaterEqual(template["spec"]["terminationGracePeriodSeconds"], 35)

    def test_servers_are_what_the_documentation_says(self):
        for _, objects in self.each():
            servers = named(objects, "StatefulSet", "server")["spec"]
            self.assertEqual(servers["podManagementPolicy"], "Parallel")
            self.assertEqual(servers["persistentVolumeClaimRetentionPolicy"],
                             {"whenDeleted": "Retain", "whenScaled": "Retain"})
            service = named(objects, "Service", "server")["spec"]
            self.assertEqual(service["clusterIP"], "None")
            self.assertIs(service["publishNotReadyAddresses"], True)
            budget = named(objects, "PodDisruptionBudget", "server")["spec"]
            self.assertEqual(budget["unhealthyPodEvictionPolicy"], "AlwaysAllow")

    def test_workers_of_a_job_are_what_the_documentation_says(self):
        for name, objects in self.each():
            if any(one["kind"] == "StatefulSet" and one["metadata"]["name"].endswith("-worker")
                   for one in objects):
                continue
            workers = named(objects, "Job", "worker")["spec"]
            self.assertEqual(workers["completionMode"], "Indexed")
            self.assertEqual(workers["completions"], workers["parallelism"])
            self.assertEqual(workers["podReplacementPolicy"], "Failed")
            self.assertIn("backoffLimitPerIndex", workers)
            rules = [(rule["action"], rule.get("onExitCodes", {}).get("values"))
                     for rule in workers["podFailurePolicy"]["rules"]]
            self.assertEqual(rules, [("FailJob", [64, 78]), ("Ignore", None), ("Ignore", [75])])
            for container in containers_of(workers["template"]):
                self.assertEqual([action_of(workers, container, code) for code in (1, 64, 75, 78)],
                                 ["Count", "FailJob", "Ignore", "FailJob"], container["name"])
            self.assertEqual(workers["suspend"] if "kueue" in name else False,
                             "kueue" in name and True)

    def test_servers_and_workers_show_themselves_where_probes_and_prometheus_ask(self):
        for owner, template in self.each_pod():
            component = owner["metadata"]["labels"][COMPONENT]
            container = template["spec"]["containers"][0]
            ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
            probes = {kind: container[kind]["httpGet"] for kind in ("readinessProbe", "livenessProbe")
                      if kind in container}
            if component == "run":
                self.assertFalse(ports or probes)
                continue
            self.assertIn(f"--http=*:{ports['http']}", container["args"])
            # A worker of a StatefulSet rests when it is done, and answers nobody; a program does so before it
            # joins.
            program = "a program" in self.now
            rests = component == "worker" and (owner["kind"] == "StatefulSet" or program)
            expected = {"readinessProbe": {"path": "/readyz", "port": "http"},
                        "livenessProbe": {"path": "/healthz", "port": "http"}}
            if rests:
                del expected["livenessProbe"]
            self.assertEqual(probes, expected)

    def test_prometheus_finds_the_runs_pods_and_may_reach_them(self):
        for name in ("components/podmonitor", "all components, a Job", "kumo manifests: a StatefulSet"):
            self.now, objects = name, self.rendered[name]
            monitor = named(objects, "PodMonitor", "pods")
            run = monitor["metadata"]["labels"][INSTANCE]
            self.assertEqual(monitor["spec"]["selector"]["matchLabels"],
                             {"app.kubernetes.io/name": "kumo", INSTANCE: run})
            endpoint, = monitor["spec"]["podMetricsEndpoints"]
            policy = named(objects, "NetworkPolicy", "metrics")["spec"]
            self.assertEqual(policy["podSelector"], monitor["spec"]["selector"])
            rule, = policy["ingress"]
            self.assertEqual(rule["ports"], [{"port": endpoint["port"]}])
            self.assertEqual(rule["from"], [{
                "namespaceSelector": {}, "podSelector": {"matchExpressions": [
                    {"key": "app.kubernetes.io/name", "operator": "In", "values": ["prometheus"]}]}}])

    def test_the_experiment_cannot_change_under_a_run(self):
        for objects in self.runs():
            self.assertIs(named(objects, "ConfigMap", "experiment")["immutable"], True)

    def test_the_servers_of_an_overlays_experiment_are_its_pods(self):
        for objects in self.runs():
            servers = named(objects, "StatefulSet", "server")
            service = named(objects, "Service", "server")["metadata"]["name"]
            text = named(objects, "ConfigMap", "experiment")["data"]["experiment.conf"]
            addresses = re.search(r"^servers = (.*)$", text, re.MULTILINE)[1].split(", ")
            pods = [f"{servers['metadata']['name']}-{index}"
                    for index in range(servers["spec"]["replicas"])]
            self.assertEqual(addresses, [f"tcp://{pod}.{service}:7700" for pod in pods])
            workers, = (one["spec"] for one in objects if one["metadata"]["name"].endswith("-worker"))
            count = workers.get("completions") or workers["replicas"]
            self.assertIn(f"\nworkers = {count}\n", text)
            # Each server has a volume of its own, or all have one.
            own = "volumeClaimTemplates" in servers["spec"]
            disks = re.search(r"^disks = (\w+)", text, re.MULTILINE)
            self.assertEqual("private" if own else "shared", disks[1] if disks else "shared")

    def test_components_do_what_they_are_for(self):
        def pod(name, kind, owner):
            return named(self.rendered[name], kind, owner)["spec"]["template"]["spec"]
        for name, kind in (("components/gpu", "Job"), ("all components, a StatefulSet",
                                                       "StatefulSet")):
            worker = pod(name, kind, "worker")
            container = worker["containers"][0]
            self.assertIn("--set=network.device=cuda", container["args"])
            self.assertEqual(container["resources"]["limits"]["nvidia.com/gpu"], 1)
            self.assertNotIn("nvidia.com/gpu", str(pod(name, "StatefulSet", "server")))
        for name, kind in (("components/stage-data", "Job"), ("all components, a StatefulSet",
                                                              "StatefulSet")):
            stage, = pod(name, kind, "worker")["initContainers"]
            self.assertEqual(stage["command"], ["kumo", "stage", "/source", "/data"])
        server = pod("components/final-model", "StatefulSet", "server")
        self.assertIn({"name": "models", "mountPath": "/models"},
                      server["containers"][0]["volumeMounts"])
        shared = named(self.rendered["components/shared-volume"], "StatefulSet", "server")["spec"]
        self.assertNotIn("volumeClaimTemplates", shared)
        for kind in ("components/spot", "overlays/eks-spot"):
            server = str(pod(kind, "StatefulSet", "server")["affinity"]["nodeAffinity"])
            self.assertIn("requiredDuring", server)
            self.assertNotIn("'In'", server)
            self.assertIn("preferredDuring",
                          str(pod(kind, "Job", "worker")["affinity"]["nodeAffinity"]))
        kueue = named(self.rendered["components/kueue"], "Job", "worker")
        self.assertEqual(kueue["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], "kumo")

    @unittest.skipUnless(KUMO, "kumo is not given")
    def test_kumo_manifests_says_what_it_is_asked_for(self):
        much = self.rendered["kumo manifests: much"]
        self.assertEqual(named(much, "StatefulSet", "server")["spec"]["replicas"], 3)
        workers = named(much, "Job", "worker")["spec"]
        self.assertEqual((workers["completions"], workers["parallelism"]), (5, 5))
        pod = workers["template"]["spec"]
        self.assertEqual(pod["terminationGracePeriodSeconds"], 120)
        self.assertEqual(pod["containers"][0]["resources"]["requests"]["cpu"], "2")
        for _, template in pod_templates(much):
            for container in containers_of(template):
                self.assertEqual(container["image"], "host:5000/kumo:v1")
        self.assertTrue(all(one["metadata"]["name"].startswith("big-") for one in much))
        quick = self.rendered["kumo manifests: a StatefulSet"]
        self.assertEqual(named(quick, "StatefulSet", "worker")["spec"]["replicas"], 4)

    @unittest.skipUnless(KUMO, "kumo is not given")
    def test_a_runs_name_may_be_a_word_that_is_no_string_in_yaml(self):
        for name in ("on", "off", "yes", "no", "y", "n", "true", "false", "null"):
            for one in render_by_kumo("mnist_lenet", "--run", name):
                self.assertEqual(one["metadata"]["labels"][INSTANCE], name)

    @unittest.skipUnless(KUMO, "kumo is not given")
    def test_detectors_are_rendered_for_gpus_and_one_volume(self):
        for name in ("bccd_ssd300_slim", "voc_ssd300"):
            objects = render_by_kumo(name, "--with", "shared-volume,gpu")
            self.assertNotIn("volumeClaimTemplates", named(objects, "StatefulSet", "server")["spec"])
            container = named(objects, "Job", "worker")["spec"]["template"]["spec"]["containers"][0]
            self.assertEqual(container["resources"]["limits"]["nvidia.com/gpu"], 1)
            files = named(objects, "ConfigMap", "experiment")["data"]
            self.assertIn("reader = voc\n", files["experiment.conf"])
            network, = (text for file, text in files.items() if file.endswith(".pbtxt"))
            self.assertIn("multibox", network)

    @unittest.skipUnless(KUMO, "kumo is not given")
    def test_programs_run_in_an_image_of_their_own(self):
        for name in ("a program", "a program in a StatefulSet"):
            self.now, objects = name, self.rendered[f"kumo manifests: {name}"]
            for owner, template in pod_templates(objects):
                worker = owner["metadata"]["labels"][COMPONENT] == "worker"
                container = template["spec"]["containers"][0]
                self.assertEqual(container["image"], "mine:2" if worker else "kumo:latest")
                if worker:
                    self.assertEqual(container["command"][-1], "kumo-worker")
            files = named(objects, "ConfigMap", "experiment")["data"]
            self.assertEqual(list(files), ["experiment.conf"])
            self.assertIn("command = python3 mnist_lenet.py", files["experiment.conf"])

    @unittest.skipUnless(KUMO, "kumo is not given")
    def test_the_experiment_in_the_pods_has_the_hash_of_that_here(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(0, subprocess.run([KUMO, "manifests", "mnist_lenet", "--out", "made"],
                                               cwd=folder, capture_output=True).returncode)
            hashes = {json.loads(subprocess.run([KUMO, "check", file, "--json"], cwd=folder, text=True,
                                                capture_output=True).stdout)["experiment_hash"]
                      for file in ("mnist_lenet", "made/experiment.conf")}
            self.assertEqual(len(hashes), 1)

    def test_volumes_that_outlive_runs_pass_the_schemas_too(self):
        efs = list(yaml.safe_load_all((K8S / "overlays/eks-spot/efs.yaml").read_text()))
        volumes = render(KUBECTL, K8S / "volumes")
        for one in efs + volumes:
            kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
        for made in (efs, volumes):
            self.assertEqual({one["metadata"]["name"] for one in made
                              if one["kind"] == "PersistentVolumeClaim"},
                             {"kumo-data", "kumo-output", "kumo-models"})

    def test_the_statefulsets_pods_are_the_jobs_but_for_their_start(self):
        job = named(self.rendered["base"], "Job", "worker")["spec"]["template"]
        other = named(self.rendered["components/workers-statefulset"], "StatefulSet",
                      "worker")["spec"]["template"]
        for template in (job, other):
            spec, container = template["spec"], template["spec"]["containers"][0]
            spec.pop("restartPolicy", None)
            spec["affinity"] = "labelSelector" in str(spec["affinity"])
            container["command"] = container["command"][-1:]
            container["args"][-1] = re.sub(r"\(\w+\)", "(INDEX)", container["args"][-1])
            container["env"] = container["env"][1:]
            container.pop("livenessProbe", None)
            container["volumeMounts"] = container["volumeMounts"][:4]
            spec["volumes"] = spec["volumes"][:4]
        self.assertEqual(job, other)


class ScriptsTest(unittest.TestCase):
    def test_shells_take_them(self):
        for script in K8S.rglob("*.sh"):
            subprocess.run(["sh", "-n", script], check=True)


if __name__ == "__main__":
    ctest.run()
