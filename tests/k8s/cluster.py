"""A cluster of the tests' own: plays what Kubernetes does with the objects of one run, by its rules, on
this machine. What it plays: a StatefulSet's and an Indexed Job's controllers, the kubelet's starts and
back-off, the cluster's DNS, and the part of the API that the Job `run` asks.

- Each pod has a network namespace, and another address each time that it is made; containers in it are
  started again with back-off. A pod's root is read-only but for its volumes, its user is 65532, without
  capabilities.
- What runs is what the rendered objects say: command, arguments, environment, mounts, volumes, grace
  period, exit codes of the failure policy. Nothing of it is written here a second time.
- Whoever is told to leave gets SIGTERM, and SIGKILL when the grace period is over.

Waits of Kubernetes (back-off of 10 s and more) are a tenth here. Needs root, and a mount, network and
process namespace of its own (enter_own_namespaces).
"""
import base64
import contextlib
import datetime
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

USER = 65532
FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 1.0, 30.0
GATEWAY = "10.77.0.1"
API_NAME = "kubernetes.default.svc"
NAMESPACE = "test"


def enter_own_namespaces():
    """Starts this program again where what it mounts and connects is seen by nobody else, and all that
    it starts ends with it."""
    if os.environ.get("KUMO_OWN_NAMESPACES"):
        run("ip", "link", "set", "lo", "up")
        return
    os.environ["KUMO_OWN_NAMESPACES"] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation", "private", "--pid", "--fork",
                          "--kill-child", "--mount-proc", sys.executable, *sys.argv])


def why_not_here():
    """"" or why no cluster can be played here."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    missing = [tool for tool in ("ip", "unshare", "setpriv", "chroot", "openssl", "curl", "jq")
               if not shutil.which(tool)]
    if missing:
        return f"{', '.join(missing)} is missing"
    tried = subprocess.run(["unshare", "--net", "--mount", "ip", "link", "add", "br0", "type", "bridge"],
                           capture_output=True)
    return "" if tried.returncode == 0 else "no network namespaces with a bridge can be made here"


def run(*words):
    subprocess.run(words, check=True, capture_output=True)


def mounts_below(folder):
    """What is mounted in a folder, as this process sees it."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return [point for point in (line.split()[4] for line in lines)
            if point == str(folder) or point.startswith(f"{folder}/")]


@contextlib.contextmanager
def scratch_folder():
    """A folder that goes away again. Where something is mounted in it, it stays, and that is an error: who
    removes it would remove what is mounted, which is another's. Pods mount only in namespaces of their
    own, which are not seen from here."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="kumo-life-")).resolve()
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        mounted = mounts_below(folder)
        if mounted:
            raise AssertionError(f"{folder} is left as it is: {mounted} is mounted in it")
        shutil.rmtree(folder, ignore_errors=True)


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="microseconds")[:-6] + "Z"


class Network:
    """A bridge, an address for each new pod, and names that are looked up anew each time."""

    def __init__(self, folder):
        self.hosts = folder / "hosts"
        self.names = {API_NAME: GATEWAY}
        self.made = 0
        self.lock = threading.Lock()
        self.write()
        run("mount", "-t", "tmpfs", "none", "/run")
        run("mount", "--bind", self.hosts, "/etc/hosts")
        os.mkdir("/run/netns")
        # Its own address; else it would be one of the pods', and change when that one leaves.
        run("ip", "link", "add", "pods", "address", "02:00:00:00:00:01", "type", "bridge")
        run("ip", "address", "add", f"{GATEWAY}/16", "dev", "pods")
        run("ip", "link", "set", "pods", "up")

    def write(self):
        """In place: the file is mounted in all pods."""
        lines = ["127.0.0.1 localhost"] + [f"{address} {name}" for name, address in self.names.items()]
        with open(self.hosts, "r+" if self.hosts.exists() else "w") as file:
            file.write("\n".join(lines) + "\n")
            file.truncate()

    def join(self, name):
        """(network namespace, address) of a new pod whose name in the DNS is `name`, if any."""
        with self.lock:
            self.made += 1
            number = self.made
            address = f"10.77.{1 + number // 250}.{1 + number % 250}"
            if name:
                self.names[name] = address
                self.write()
        space = f"pod{number}"
        run("ip", "netns", "add", space)
        run("ip", "link", "add", f"veth{number}", "type", "veth", "peer", "name", "eth0", "netns", space)
        run("ip", "link", "set", f"veth{number}", "master", "pods", "up")
        for words in (["link", "set", "lo", "up"], ["address", "add", f"{address}/16", "dev", "eth0"],
                      ["link", "set", "eth0", "up"]):
            run("ip", "-n", space, *words)
        return space, address

    def leave(self, space, name, address):
        with self.lock:
            if self.names.get(name) == address:
                del self.names[name]
                self.write()
        run("ip", "netns", "delete", space)

    def close(self):
        run("ip", "link", "delete", "pods")
        run("umount", "/etc/hosts")
        run("umount", "--recursive", "/run")


class Pod:
    """One pod: made, its containers run and started again, deleted. Thread-safe."""

    def __init__(self, cluster, name, template, labels=(), annotations=()):
        self.cluster, self.name = cluster, name
        self.template = json.loads(json.dumps(template))
        metadata = self.template["metadata"]
        metadata["labels"] = {**metadata.get("labels", {}), **dict(labels)}
        metadata["annotations"] = {**metadata.get("annotations", {}), **dict(annotations)}
        self.spec = self.template["spec"]
        self.claims = {}  # of a volume's name: a folder that outlives the pod
        self.read_only = set()  # names of volumes
        self.restarts = self.spec.get("restartPolicy", "Always") == "Always"
        self.dns = ""
        self.process = None
        self.disrupted = False  # condition DisruptionTarget
        self.leaving = threading.Event()
        self.ended = threading.Event()
        self.exit_code = None    # of the only start, where it does not restart
        self.terminated = None   # state or lastState of the container
        self.log = []            # (time, line) of the container that runs, or the last one
        self.previous = None     # the log of the one before
        self.starts = 0

    def start(self, dns=""):
        self.dns = dns
        self.space, self.address = self.cluster.network.join(dns)
        self.folder = self.cluster.folder / "pods" / f"{self.name}.{self.cluster.network.made}"
        self.folder.mkdir(parents=True)
        for volume in self.spec.get("volumes", []):
            self.make_volume(volume)
        threading.Thread(target=self.live, daemon=True).start()
        return self

    def make_volume(self, volume):
        path = self.folder / "volumes" / volume["name"]
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]
            self.claims[volume["name"]] = self.cluster.claim(claim["claimName"])
            if claim.get("readOnly"):
                self.read_only.add(volume["name"])
        elif "secret" in volume:
            path.mkdir(parents=True)
            for file in self.cluster.secrets[volume["secret"]["secretName"]]:
                shutil.copy(file, path)
                os.chown(path / file.name, 0, USER)
                os.chmod(path / file.name, volume["secret"]["defaultMode"])
        elif "configMap" in volume:
            path.mkdir(parents=True)
            for file, text in self.cluster.object("ConfigMap", volume["configMap"]["name"])["data"].items():
                (path / file).write_text(text)
        else:
            path.mkdir(parents=True)
            os.chown(path, USER, USER)

    def value_of(self, field):
        metadata = self.template["metadata"]
        kind, key = re.fullmatch(r"metadata\.(labels|annotations)\['(.*)'\]", field).groups()
        return metadata[kind][key]

    def environment_of(self, container):
        values = {"PATH": "/kumo/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": self.name}
        for one in container.get("env", []):
            values[one["name"]] = (one["value"] if "value" in one else
                                   self.value_of(one["valueFrom"]["fieldRef"]["fieldPath"]))
        return values

    def command_of(self, container):
        """What is run: its words, with the variables of the environment in them."""
        environment = self.environment_of(container)
        return [re.sub(r"\$\((\w+)\)", lambda found: environment.get(found[1], found[0]), word)
                for word in [*container["command"], *container.get("args", [])]]

    def root_of(self, container):
        """Shell lines that make the container's root at $R."""
        lines = ["set -e", "R=" + str(self.folder / f"root-{container['name']}-{self.starts}"),
                 "mkdir -p $R", "mount -t tmpfs none $R", "mkdir $R/proc $R/dev $R/etc $R/kumo",
                 "mount -t proc proc $R/proc", *self.mount_line("/etc", "/etc", True),
                 "mount --bind /etc/hosts $R/etc/hosts",
                 *self.mount_line(self.cluster.build, "/kumo", True)]
        lines += [f"if [ -L /{name} ]; then cp -d /{name} $R/; else mkdir $R/{name}; "
                  f"mount --bind /{name} $R/{name}; mount -o remount,bind,ro $R/{name}; fi"
                  for name in ("usr", "bin", "lib", "lib64", "sbin")]
        lines += [f"touch $R/dev/{name}; mount --bind /dev/{name} $R/dev/{name}"
                  for name in ("null", "zero", "urandom", "random")]
        lines += ["ln -s /proc/self/fd $R/dev/fd", "touch $R/dev/termination-log",
                  f": > {self.last_words()}; chmod 666 {self.last_words()}",
                  f"mount --bind {self.last_words()} $R/dev/termination-log"]
        for mount in container["volumeMounts"]:
            lines += self.mount_line(self.folder_of(mount["name"]), mount["mountPath"],
                                     mount.get("readOnly") or mount["name"] in self.read_only)
        if "serviceAccountName" in self.spec:
            lines += self.mount_line(self.cluster.api.account,
                                     "/var/run/secrets/kubernetes.io/serviceaccount", True)
        assert container["securityContext"]["readOnlyRootFilesystem"]
        return [*lines, "mount -o remount,ro $R"]

    @staticmethod
    def mount_line(source, path, read_only):
        return [f"mkdir -p $R{path}", f"mount --bind {source} $R{path}",
                *([f"mount -o remount,bind,ro $R{path}"] if read_only else [])]

    def folder_of(self, volume):
        return self.claims.get(volume, self.folder / "volumes" / volume)

    def last_words(self):
        return self.folder / "termination-log"

    def run_container(self, container):
        """Runs it once; its exit code, 128 + N where signal N has killed it."""
        self.previous = self.log if self.starts else None
        self.log, self.starts = [], self.starts + 1
        environment = [f"{name}={value}" for name, value in self.environment_of(container).items()]
        script = "\n".join([*self.root_of(container), "cd /",
                            'exec chroot $R setpriv --reuid 65532 --regid 65532 --clear-groups '
                            '--bounding-set=-all --inh-caps=-all --no-new-privs env -i "$@"'])
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", self.space, "unshare", "--mount", "--propagation", "private", "sh",
             "-c", script, "sh", *environment, *self.command_of(container)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace")
        if self.leaving.is_set():
            self.process.terminate()
        for line in self.process.stdout:
            self.log.append((now(), line.rstrip("\n")))
            self.cluster.say(f"{self.name}: {line.rstrip()}")
        self.process.stdout.close()
        code = self.process.wait()
        code = 128 - code if code < 0 else code
        words = self.last_words().read_text()
        if not words and code != 0:  # terminationMessagePolicy: FallbackToLogsOnError
            words = "\n".join(line for _, line in self.log[-80:])[-2048:]
        self.terminated = {"exitCode": code, "message": words, "finishedAt": now()}
        self.cluster.say(f"{self.name}: ended with {code}: {words.strip()}")
        return code

    def live(self):
        backoff = FIRST_BACKOFF_S
        for container in self.spec.get("initContainers", []):
            while not self.leaving.is_set() and self.run_container(container) != 0:
                self.leaving.wait(backoff)
                backoff = min(backoff * 2, LONGEST_BACKOFF_S)
        self.terminated = None
        container, = self.spec["containers"]
        while not self.leaving.is_set():
            self.exit_code = self.run_container(container)
            if not self.restarts:
                break
            self.leaving.wait(backoff)
            backoff = min(backoff * 2, LONGEST_BACKOFF_S)
        self.cluster.network.leave(self.space, self.dns, self.address)
        self.ended.set()

    def probe(self, kind):
        """Whether the container answers its probe with success, as the kubelet asks: from the node."""
        container, = self.spec["containers"]
        get = container[kind]["httpGet"]
        port = next(each["containerPort"] for each in container["ports"] if each["name"] == get["port"])
        url = f"http://{self.address}:{port}{get['path']}"
        return self.process is not None and subprocess.run(
            ["curl", "--silent", "--fail", "--noproxy", "*", "--output", "/dev/null", "--max-time",
             str(container[kind]["timeoutSeconds"]), url]).returncode == 0

    def delete(self):
        """SIGTERM, and SIGKILL after the grace period. Returns when it is gone."""
        self.leaving.set()
        if self.process:
            self.process.terminate()
        if not self.ended.wait(self.spec["terminationGracePeriodSeconds"]):
            self.process.kill()
            self.ended.wait()

    def kill(self):
        self.leaving.set()
        if self.process:
            self.process.kill()
        self.ended.wait()

    def described(self):
        """As much of a pod as the Job `run` looks at."""
        container = self.spec["containers"][0]["name"]
        runs = self.process is not None and self.process.poll() is None
        return {"spec": self.spec, "status": {"containerStatuses": [{
            "name": container, "state": {"running": {}} if runs else {"waiting": {}},
            "lastState": {"terminated": self.terminated} if self.terminated else {}}]}}


class StatefulSet:
    """Keeps a pod for each ordinal below its replicas; all at once."""

    def __init__(self, cluster, made_of):
        self.cluster, self.spec = cluster, made_of["spec"]
        self.name = made_of["metadata"]["name"]
        self.replicas = self.spec["replicas"]
        assert self.spec["podManagementPolicy"] == "Parallel"
        self.pods = {}

    def pod_name(self, ordinal):
        return f"{self.name}-{ordinal}"

    def template_of(self, name):
        """The pod's, with its own claims among its volumes."""
        template = json.loads(json.dumps(self.spec["template"]))
        for claim in self.spec.get("volumeClaimTemplates", []):
            volume = claim["metadata"]["name"]
            template["spec"]["volumes"].append(
                {"name": volume, "persistentVolumeClaim": {"claimName": f"{volume}-{name}"}})
        return template

    def reconcile(self):
        for ordinal in [*self.pods]:
            if self.pods[ordinal].ended.is_set():
                del self.pods[ordinal]
            elif ordinal >= self.replicas and not self.pods[ordinal].leaving.is_set():
                threading.Thread(target=self.pods[ordinal].delete, daemon=True).start()
        for ordinal in range(self.replicas):
            if ordinal not in self.pods:
                name = self.pod_name(ordinal)
                pod = Pod(self.cluster, name, self.template_of(name),
                          labels={"apps.kubernetes.io/pod-index": str(ordinal)})
                self.pods[ordinal] = pod.start(dns=f"{name}.{self.spec['serviceName']}")

    def pod(self, name):
        return next((pod for pod in self.pods.values() if pod.name == name), None)


class Job:
    """Keeps a pod for each index, or one, until it has ended with 0, by the failure policy. no_node: indexes
    whose new pods stay Pending, since no node has room for them."""

    def __init__(self, cluster, made_of):
        self.cluster, self.spec = cluster, made_of["spec"]
        self.metadata = made_of["metadata"]
        self.name = self.metadata["name"]
        self.indexed = self.spec.get("completionMode") == "Indexed"
        self.no_node = set()
        self.limit = self.spec.get("backoffLimitPerIndex", self.spec.get("backoffLimit", 6))
        assert self.spec["podReplacementPolicy"] == "Failed"
        self.pods, self.done, self.failures, self.not_before = {}, set(), {}, {}
        self.failed = ""     # the condition's message
        self.exit_code = None  # of the pod that made the Job fail

    @property
    def indexes(self):
        return range(self.spec.get("completions", 1))

    @property
    def complete(self):
        return not self.failed and not self.pods and self.done >= set(self.indexes)

    def patch(self, changes):
        """A JSON merge patch of numbers of pods, or of annotations."""
        numbers = changes.pop("spec", {})
        assert numbers.keys() <= {"completions", "parallelism"}, numbers
        self.spec.update(numbers)
        if numbers:  # as an Indexed Job may be changed
            assert self.indexed and self.spec["completions"] == self.spec["parallelism"], self.spec
        annotations = changes.pop("metadata", {}).get("annotations", {})
        self.metadata.setdefault("annotations", {}).update(annotations)
        assert not changes, changes

    def action(self, pod):
        for rule in self.spec["podFailurePolicy"]["rules"]:
            if pod.exit_code in rule.get("onExitCodes", {}).get("values", []):
                return rule["action"]
            if pod.disrupted and "onPodConditions" in rule:
                return rule["action"]
        return "Count"

    def end_of(self, index, pod):
        if pod.exit_code == 0:
            self.done.add(index)
            return
        action = self.action(pod)
        failures = self.failures.get(index, 0) + (action == "Count")
        self.failures[index] = failures
        if action == "FailJob" or failures > self.limit:
            container = pod.spec["containers"][0]["name"]
            self.exit_code = pod.exit_code
            self.failed = (f"Container {container} for pod {NAMESPACE}/{pod.name} failed with exit code "
                           f"{pod.exit_code} matching {action} rule at index 0")
            for other in self.pods.values():
                threading.Thread(target=other.delete, daemon=True).start()
            return
        backoff = min(FIRST_BACKOFF_S * 2 ** max(0, failures - 1), LONGEST_BACKOFF_S) if failures else 0
        self.not_before[index] = time.monotonic() + backoff

    def reconcile(self):
        for index in [*self.pods]:
            if self.pods[index].ended.is_set():
                self.end_of(index, self.pods.pop(index))
            elif index not in self.indexes and not self.pods[index].leaving.is_set():
                threading.Thread(target=self.pods[index].delete, daemon=True).start()
        if self.failed:
            return
        for index in self.indexes:
            if (index in self.done or index in self.pods or index in self.no_node or
                    time.monotonic() < self.not_before.get(index, 0)):
                continue
            name = f"{self.name}-{index}-{base64.b32encode(os.urandom(5)).decode().lower()[:5]}"
            annotations = {"batch.kubernetes.io/job-completion-index": str(index)} if self.indexed else {}
            self.pods[index] = Pod(self.cluster, name, self.spec["template"],
                                   annotations=annotations).start()

    def pod(self, name):
        return next((pod for pod in self.pods.values() if pod.name == name), None)

    def described(self):
        """As much of a Job as the Job `run` looks at."""
        condition = "Failed" if self.failed else "Complete" if self.complete else None
        return {"metadata": self.metadata, "status": {"conditions": [
            {"type": condition, "status": "True", "message": self.failed}] if condition else []}}


class Api:
    """What the Job `run` asks of the API server: by TLS, with its token, and with the rights of its Role."""

    def __init__(self, cluster, folder):
        self.cluster = cluster
        self.account = folder / "account"
        self.account.mkdir()
        (self.account / "namespace").write_text(NAMESPACE)
        self.token = base64.b16encode(os.urandom(8)).decode()
        (self.account / "token").write_text(self.token)
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-subj", f"/CN={API_NAME}", "-addext", f"subjectAltName=DNS:{API_NAME}", "-keyout",
            folder / "key.pem", "-out", self.account / "ca.crt")
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                api.answer(self, None)

            def do_PATCH(self):
                api.answer(self, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((GATEWAY, 443), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.account / "ca.crt", folder / "key.pem")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, request, body):
        if request.headers["Authorization"] != f"Bearer {self.token}":
            return request.send_error(401)
        url = urllib.parse.urlparse(request.path)
        question = dict(urllib.parse.parse_qsl(url.query))
        asked = re.fullmatch(rf"/(?:api/v1|apis/(batch|apps)/v1)/namespaces/{NAMESPACE}/"
                             r"(pods|jobs|statefulsets)/([\w-]+)(/\w+)?", url.path)
        if not asked:
            return request.send_error(404)
        group, kind, name, rest = asked.groups(default="")
        if not self.cluster.allows(group, kind + rest, "get" if body is None else "patch"):
            return request.send_error(403)
        if kind == "statefulsets":
            found = self.cluster.find(StatefulSet, name)
            if body:
                found.replicas = body["spec"]["replicas"]
            return self.reply(request, {"spec": {"replicas": found.replicas}})
        found = (self.cluster.pod(name) if kind == "pods" else self.cluster.find(Job, name))
        if found is None:
            return request.send_error(404)
        if body is not None:
            found.patch(body)
            return self.reply(request, found.described())
        if rest == "/log":
            previous = "previous" in question
            if previous and found.previous is None:
                return request.send_error(400)
            return self.stream(request, found, found.previous if previous else found.log,
                               question.get("sinceTime", ""), previous)
        return self.reply(request, found.described())

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def reply(request, body):
        request.send_response(200)
        request.end_headers()
        request.wfile.write(json.dumps(body).encode())

    @staticmethod
    def stream(request, pod, log, since, over):
        """With the seconds of `since` only, as the real one has it, and until the container ends."""
        request.send_response(200)
        request.end_headers()
        process, sent = pod.process, 0
        try:
            while True:
                over = over or process is None or process.poll() is not None
                while sent < len(log):
                    at, line = log[sent]
                    sent += 1
                    if at >= since[:19]:
                        request.wfile.write(f"{at} {line}\n".encode())
                        request.wfile.flush()
                if over:
                    return
                time.sleep(0.02)
        except OSError:
            pass  # whoever asked has gone


class Cluster:
    """objects: what `kubectl apply -k` would hand in. build: where Kumo is. claims: of a claim's name, a
    folder. secrets: of a Secret's name, its files. say: takes what happens, a line at a time."""

    def __init__(self, objects, folder, build, claims, secrets, say):
        self.secrets = secrets
        self.objects, self.folder, self.build, self.say = objects, folder, build, say
        self.claims = claims
        self.network = Network(folder)
        self.api = Api(self, folder)
        kinds = {"StatefulSet": StatefulSet, "Job": Job}
        self.controllers = [kinds[one["kind"]](self, one) for one in objects if one["kind"] in kinds]

    def object(self, kind, name):
        return next(one for one in self.objects
                    if (one["kind"], one["metadata"]["name"]) == (kind, name))

    def allows(self, group, resource, verb):
        """Whether the run's Role does."""
        return any(group in rule["apiGroups"] and resource in rule["resources"] and verb in rule["verbs"]
                   for one in self.objects if one["kind"] == "Role" for rule in one["rules"])

    def claim(self, name):
        if name not in self.claims:
            self.claims[name] = self.folder / "claims" / name
            self.claims[name].mkdir(parents=True)
            os.chown(self.claims[name], USER, USER)  # fsGroup
        return self.claims[name]

    def lose(self, name):
        """The claim, with what is on its volume: the next pod that wants it has an empty one. Returns where
        the pod that has it writes to as long as it is there."""
        folder = self.claims.pop(name)
        return folder.rename(folder.with_name(f"{name}.lost"))

    def close(self):
        """Kills whoever is left, so that another cluster can be made."""
        for controller in self.controllers:
            for pod in controller.pods.values():
                pod.kill()
        self.api.close()
        self.network.close()

    def find(self, kind, name):
        return next((one for one in self.controllers if isinstance(one, kind) and one.name == name), None)

    def pod(self, name):
        return next(filter(None, (controller.pod(name) for controller in self.controllers)), None)

    def reconcile_until(self, condition, what, limit_s):
        """Plays on until `condition()`; AssertionError, saying `what`, where that takes too long."""
        end = time.monotonic() + limit_s
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"not within {limit_s} s: {what}")
            for controller in self.controllers:
                controller.reconcile()
            time.sleep(0.05)

    def evict(self, pod):
        """What a drain does to one pod: the condition, then as any deletion."""
        pod.disrupted = True
        threading.Thread(target=pod.delete, daemon=True).start()
