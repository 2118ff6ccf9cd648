"""Hosts of one machine with links of a given rate and delay, for benchmarks of slow networks.

Each host is a network namespace; a switch joins them. link_relay.cc carries the packets: it holds
back each as long as a link of that rate and delay would. Needs root, /dev/net/tun, iproute2 and
util-linux. Nothing is left when this process has ended.
"""
import os
import subprocess

from relay import namespace_with_tun

QUEUE_S = .1  # of packets that wait at each end of a link


class Links:
    """A context manager. Until `shape` is called, nothing is held back."""

    def __init__(self, relay, count, congestion):
        """relay: the program; count: of hosts; congestion: control of TCP, such as cubic."""
        self.devices, self.namespaces = zip(*(
            namespace_with_tun(f"{address(host)}/24", segments=True) for host in range(count)))
        for host in range(count):
            self.popen(host, ["ip", "route", "replace", "10.77.0.0/24", "dev", "kumo", "congctl",
                              congestion]).wait()
        # The links must not wait for the processes that they connect.
        self.process = subprocess.Popen(
            ["nice", "-n", "-10", relay, *map(str, self.devices)], pass_fds=self.devices,
            stdin=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        for descriptor in self.devices + self.namespaces:
            os.close(descriptor)

    def shape(self, bits_per_s, delay_s):
        """Rate of each host's link, in each direction (0: unlimited), and delay from host to host."""
        self.process.stdin.write(f"{bits_per_s} {delay_s} {QUEUE_S}\n")
        self.process.stdin.flush()

    def popen(self, host, command, **options):
        """Starts a process on a host."""
        namespace = self.namespaces[host]
        return subprocess.Popen(
            ["nsenter", f"--net=/proc/self/fd/{namespace}", "--", *map(str, command)],
            pass_fds=[namespace], **options)


def address(host):
    """IP address of a host."""
    return f"10.77.0.{10 + host}"
