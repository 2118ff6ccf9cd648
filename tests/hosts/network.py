"""Hosts for tests: network namespaces on one bridge, each with an sshd of its own.

They share this machine's file system. Needs root, iproute2 and openssh-server; nothing of the
machine's own network or ssh is used or changed, and everything goes with the `with`.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

LIMIT_S = 120


def missing():
    """What keeps these tests from running here; "" for nothing."""
    if os.geteuid() != 0:
        return "they need root, for network namespaces"
    for program in ("ip", "ssh", "sshd", "ssh-keygen"):
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin"):
            return f"{program} is missing (iproute2, openssh-client, openssh-server)"
    tried = subprocess.run(["ip", "netns", "add", f"kumo-try-{os.getpid()}"], capture_output=True)
    if tried.returncode != 0:
        return "no network namespaces can be made here: " + tried.stderr.decode().strip()
    subprocess.run(["ip", "netns", "del", f"kumo-try-{os.getpid()}"], check=True)
    return ""


def run(*command):
    subprocess.run(command, check=True)


def wait_until(what, condition, limit_s=LIMIT_S):
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {limit_s} s")
        time.sleep(0.05)


class Host:
    def __init__(self, network, number):
        self.name = f"{network.name}-{number}"
        self.address = f"10.213.77.{number}"
        self.link = f"{network.short}{number}"
        self.network = network
        run("ip", "netns", "add", self.name)
        self.ip("link", "set", "lo", "up")
        run("ip", "-n", network.name, "link", "add", self.link, "type", "veth", "peer", "name",
            "eth0", "netns", self.name)
        run("ip", "-n", network.name, "link", "set", self.link, "master", "bridge", "up")
        self.ip("address", "add", self.address + "/24", "dev", "eth0")
        self.ip("link", "set", "eth0", "up")

    def ip(self, *command):
        run("ip", "-n", self.name, *command)

    def command(self, *command):
        return ["ip", "netns", "exec", self.name, *command]

    def start_sshd(self, folder):
        config = folder / f"sshd-{self.address}"
        config.write_text(f"""ListenAddress {self.address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
""")
        sshd = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")
        with open(folder / f"sshd-{self.address}.log", "w") as log:
            self.sshd = subprocess.Popen(self.command(sshd, "-D", "-e", "-f", str(config)),
                                         stderr=log)

    def listens(self):
        tried = subprocess.run(self.command("bash", "-c", f"echo > /dev/tcp/{self.address}/22"),
                               capture_output=True)
        return tried.returncode == 0

    def pids(self):
        """Of what runs on it, but for sshd and its children that serve a connection."""
        return [pid for pid in self.all_pids() if not self._is_sshd(pid)]

    def all_pids(self):
        return subprocess.run(["ip", "netns", "pids", self.name], capture_output=True, text=True,
                              check=True).stdout.split()

    @staticmethod
    def _is_sshd(pid):
        try:
            return pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("sshd")
        except OSError:
            return True  # it has ended

    def programs(self):
        names = []
        for pid in self.pids():
            try:
                names.append(pathlib.Path(f"/proc/{pid}/comm").read_text().strip())
            except OSError:
                pass
        return sorted(names)


class Network:
    """`count` hosts with sshd; the first one is the person's, who launches."""

    def __init__(self, count):
        self.short = f"k{os.getpid() % 100000}-"
        self.name = f"kumo-test-{os.getpid()}"
        self.hosts = []
        self.count = count

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="kumo-hosts-")
        self.folder = pathlib.Path(self._folder.name)
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self):
        run("ip", "netns", "add", self.name)
        run("ip", "-n", self.name, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", self.name, "link", "set", "bridge", "up")
        for key in ("key", "host_key"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / key))
        config = self.folder / "ssh_config"
        config.write_text(f"""IdentityFile {self.folder}/key
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
""")
        self.ssh = f"ssh -F {config}"
        os.makedirs("/run/sshd", exist_ok=True)
        for number in range(1, self.count + 1):
            host = Host(self, number)
            self.hosts.append(host)
            host.start_sshd(self.folder)
        for host in self.hosts:
            wait_until(f"the sshd of {host.name}", host.listens)

    def __exit__(self, *_):
        for host in self.hosts:
            host.sshd.terminate()
            host.sshd.wait()
            for pid in host.all_pids():
                os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", host.name])
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True)
        self._folder.cleanup()
