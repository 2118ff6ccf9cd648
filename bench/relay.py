"""Simulated networks of bench/chaos.py, and the faults that it can inject into them.

A network has nodes with the names of the processes ("server-0", "worker-1"). It gives each node
the addresses of the servers, gives each server its listening address, starts a process as a node,
and can impair a node's traffic at any moment:

  Packets   each node has a network namespace with a TUN device of its own, and this process carries
            the IP packets between them, and can drop and delay them. Needs root, /dev/net/tun,
            iproute2 and util-linux. Namespaces and devices have no names outside this process: they
            are gone when this process and the nodes have ended, however they end.
  Relay     all nodes on loopback; each connection goes through this process, which stalls and
            delays the bytes of each direction. Needs nothing, but cannot lose a packet, since both
            halves of a connection are TCP.
  Loopback  all nodes on loopback, with direct connections: no impairment.

A thread of this process carries the packets and bytes.
"""
import asyncio
import collections
import contextlib
import ctypes
import fcntl
import os
import random
import shutil
import socket
import struct
import subprocess
import threading
import typing

CLONE_NEWNET, TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x40000000, 0x400454CA, 0x0001, 0x1000
TUNSETOFFLOAD, IFF_VNET_HDR, TUN_F_CSUM_TSO4 = 0x400454D0, 0x4000, 0x0003
PACKETS_AT_ONCE = 64  # read from one node before others have their turn
CHUNK, CHUNKS_UNDER_WAY = 65536, 64  # of a relayed connection and direction


class Impairment(typing.NamedTuple):
    """Impairment of a node's traffic."""
    into: bool = False   # nothing arrives at the node
    out: bool = False    # nothing leaves it
    loss: float = 0      # share of packets lost, each way
    delay_s: float = 0   # each way


NONE = Impairment()


def free_ports(count):
    """Free loopback ports."""
    with contextlib.ExitStack() as held:
        ports = []
        for _ in range(count):
            any_port = held.enter_context(socket.socket())
            any_port.bind(("127.0.0.1", 0))
            ports.append(any_port.getsockname()[1])
        return ports


class Loopback:
    """Network of direct connections, without impairment; base of the other networks."""
    name, can = "loopback", frozenset()

    def __init__(self, servers, workers):
        self.servers = [f"server-{i}" for i in range(servers)]
        self.workers = [f"worker-{i}" for i in range(workers)]
        self.impaired = collections.defaultdict(lambda: NONE)
        self.ports = free_ports(servers)

    def addresses(self, node):
        """The servers' addresses, for that node."""
        return [f"tcp://127.0.0.1:{port}" for port in self.ports]

    def bind(self, server):
        return f"tcp://127.0.0.1:{self.ports[self.servers.index(server)]}"

    def popen(self, node, command, **options):
        return subprocess.Popen(command, **options)

    def impair(self, node, impairment):
        self.impaired[node] = impairment

    def blocked(self, source, target):
        return self.impaired[source].out or self.impaired[target].into

    def delay_s(self, source, target):
        return self.impaired[source].delay_s + self.impaired[target].delay_s

    def close(self):
        pass


class Carried(Loopback):
    """A network whose traffic a thread of this process carries, in an event loop."""

    def __init__(self, servers, workers):
        super().__init__(servers, workers)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def carry(self):
        self.thread.start()

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        if self.thread.is_alive():
            self.thread.join()


class Packets(Carried):
    """A namespace and a TUN device per node; a switch for IP packets between them."""
    name, can = "packets", frozenset({"cut", "oneway", "loss", "latency"})

    @staticmethod
    def missing():
        """What this machine lacks for it, in words; "" when nothing."""
        for tool in ("ip", "nsenter"):
            if not shutil.which(tool):
                return f"there is no program {tool}"
        try:
            device, namespace = namespace_with_tun("10.77.0.1/24")
        except OSError as error:
            return str(error)
        os.close(device)
        os.close(namespace)
        return ""

    def __init__(self, servers, workers):
        super().__init__(servers, workers)
        self.nodes, self.devices, self.namespaces = {}, {}, {}
        self.random = random.Random(1)
        for number, node in enumerate(self.servers + self.workers, start=10):
            self.nodes[bytes((10, 77, 0, number))] = node
            self.devices[node], self.namespaces[node] = namespace_with_tun(f"10.77.0.{number}/24")
            self.loop.add_reader(self.devices[node], self.forward, node)
        self.carry()

    def addresses(self, node):
        return [f"tcp://10.77.0.{10 + i}:7700" for i in range(len(self.servers))]

    def bind(self, server):
        return self.addresses(server)[self.servers.index(server)]

    def popen(self, node, command, **options):
        namespace = self.namespaces[node]
        return subprocess.Popen(["nsenter", f"--net=/proc/self/fd/{namespace}", "--", *command],
                                pass_fds=[namespace], **options)

    def forward(self, source):
        for _ in range(PACKETS_AT_ONCE):
            try:
                packet = os.read(self.devices[source], 65536)
            except BlockingIOError:
                return
            target = self.nodes.get(packet[16:20]) if packet[0] >> 4 == 4 else None
            if target and not self.blocked(source, target) and not self.lost(source, target):
                delay_s = self.delay_s(source, target)
                if delay_s:
                    self.loop.call_later(delay_s, self.deliver, target, packet)
                else:
                    self.deliver(target, packet)

    def lost(self, source, target):
        return any(self.impaired[node].loss and self.random.random() < self.impaired[node].loss
                   for node in (source, target))

    def deliver(self, target, packet):
        try:
            os.write(self.devices[target], packet)
        except OSError:
            pass  # a full queue loses packets; that is what networks do


def namespace_with_tun(address, segments=False):
    """A new network namespace, as (descriptor of its TUN device, descriptor of the namespace). A
    thread of its own enters it, so that the rest of this process stays where it is. segments: the
    device hands over and takes segments of up to 64 KiB, each behind a virtio_net_hdr."""
    made = []

    def make():
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.unshare(CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "no network namespace can be made")
            device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            flags = IFF_TUN | IFF_NO_PI | (IFF_VNET_HDR if segments else 0)
            fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"kumo", flags))
            if segments:
                fcntl.ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM_TSO4)
            for command in ("link set lo up", f"address add {address} dev kumo",
                            "link set kumo txqueuelen 5000 up"):
                subprocess.run(["ip", *command.split()], check=True, capture_output=True)
            made.extend((device, os.open("/proc/thread-self/ns/net", os.O_RDONLY)))
        except (OSError, subprocess.CalledProcessError) as error:
            made.append(OSError(str(error)))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if isinstance(made[-1], OSError):
        raise made[-1]
    return tuple(made)


class Relay(Carried):
    """A port per pair of client and server, so that it is known whose bytes they are."""
    name, can = "relay", frozenset({"cut", "oneway", "latency"})

    def __init__(self, servers, workers):
        super().__init__(servers, workers)
        self.public = {}  # (client, server) -> port
        pairs = [(client, server) for client in self.workers for server in self.servers]
        # Servers talk to server 0, and to the next one where versions are kept twice.
        pairs += [(client, self.servers[0]) for client in self.servers[1:]]
        pairs += list(zip(self.servers[1:], self.servers[2:]))
        for client, server in pairs:
            listening = self.loop.run_until_complete(asyncio.start_server(
                lambda reader, writer, client=client, server=server:
                self.connect(client, server, reader, writer), "127.0.0.1", 0))
            self.public[client, server] = listening.sockets[0].getsockname()[1]
        self.carry()

    def addresses(self, node):
        return [f"tcp://127.0.0.1:{self.public.get((node, server), port)}"
                for server, port in zip(self.servers, self.ports)]

    async def connect(self, client, server, reader, writer):
        await self.until_open(client, server)
        try:
            there = await asyncio.open_connection(
                "127.0.0.1", self.ports[self.servers.index(server)])
        except OSError:
            writer.close()
            return
        await asyncio.gather(self.carry_bytes(client, server, reader, there[1]),
                             self.carry_bytes(server, client, there[0], writer))

    async def until_open(self, source, target):
        while self.blocked(source, target):
            await asyncio.sleep(0.02)

    async def carry_bytes(self, source, target, reader, writer):
        """One direction of a connection. What is under way when it is cut arrives when it heals,
        and so does the news that one end has closed."""
        under_way = asyncio.Queue(CHUNKS_UNDER_WAY)

        async def read():
            data = b"."
            while data:
                try:
                    data = await reader.read(CHUNK)
                except OSError:
                    data = b""
                await under_way.put((self.loop.time() + self.delay_s(source, target), data))

        reading = asyncio.ensure_future(read())
        with contextlib.suppress(OSError):
            while True:
                due, data = await under_way.get()
                await asyncio.sleep(max(0, due - self.loop.time()))
                await self.until_open(source, target)
                if not data:
                    break
                writer.write(data)
                await writer.drain()
        reading.cancel()
        writer.close()


def choose(kind, servers, workers):
    """The network of that kind ("auto": the best that this machine allows), and a remark or ""."""
    lacking = Packets.missing() if kind in ("auto", "packets") else ""
    if kind == "packets" and lacking:
        raise OSError(f"--network packets: {lacking}")
    if kind == "auto":
        kind = "relay" if lacking else "packets"
    remark = f"no packets can be lost here: {lacking}" if lacking else ""
    networks = {network.name: network for network in (Packets, Relay, Loopback)}
    return networks[kind](servers, workers), remark
