"""Copiers between torch tensors and the float32 numbers on the host that the library reads and writes."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable

import torch


class Copier:
    """Copier for the CPU, and for devices whose copies block.

    key: names a tensor. The result of to_host() is valid until the next call with this key.
    """

    def fetch(self, key: Hashable, tensor: torch.Tensor) -> None:
        """Begins the copy that the next to_host() of this key returns."""

    def to_host(self, key: Hashable, tensor: torch.Tensor) -> torch.Tensor:
        return _exchanged(tensor).cpu()

    def load(self, key: Hashable, tensor: torch.Tensor, read: Callable[[int], None]) -> None:
        """Fills a tensor by read(address), which writes float32 numbers in row-major order."""
        with torch.no_grad():
            if tensor.device.type == "cpu" and tensor.dtype == torch.float32 and tensor.is_contiguous():
                read(tensor.data_ptr())
                return
            # The program may have another default device.
            host = torch.empty(tensor.shape, dtype=torch.float32, device="cpu")
            read(host.data_ptr())
            tensor.copy_(host)

    def finish(self) -> None:
        """Waits for the copies that load() has begun."""


class CudaCopier(Copier):
    """Copier for a CUDA device: pinned buffers, one for each key, which are kept, and a stream for the copies.

    The stream is ordered between the work that the program's stream has before a copy and the work that it gets
    later. So a copy sees finished tensors, the program sees copied ones, and the memory of a tensor that is freed
    is not used again during its copy. The host waits before it touches a buffer: to_host() for all copies, which
    is one wait if all tensors were fetched before the first to_host(); load() for the last copy of this buffer only,
    so that the library writes one tensor while the device copies another. Another stream of the program sees what was
    loaded after finish().
    """

    def __init__(self, device: torch.device):
        self._device = device
        self._stream = torch.cuda.Stream(device)
        self._buffers: dict[Hashable, tuple[torch.Tensor, torch.cuda.Event]] = {}  # with the end of its last copy
        self._fetched: set[Hashable] = set()

    def fetch(self, key: Hashable, tensor: torch.Tensor) -> None:
        buffer, copied = self._buffer(key, tensor.shape)
        with self._on_copy_stream(copied):
            buffer.copy_(_exchanged(tensor), non_blocking=True)
        self._fetched.add(key)

    def to_host(self, key: Hashable, tensor: torch.Tensor) -> torch.Tensor:
        if key not in self._fetched:
            self.fetch(key, tensor)
        self._fetched.discard(key)
        self._stream.synchronize()
        return self._buffers[key][0]

    def load(self, key: Hashable, tensor: torch.Tensor, read: Callable[[int], None]) -> None:
        self._fetched.discard(key)  # a block that was dropped may have left its numbers
        buffer, copied = self._buffer(key, tensor.shape)
        copied.synchronize()
        read(buffer.data_ptr())
        with torch.no_grad(), self._on_copy_stream(copied):
            # A conversion on the host would need memory that is not pinned.
            numbers = buffer if tensor.dtype == torch.float32 else buffer.to(tensor.device, non_blocking=True)
            tensor.copy_(numbers, non_blocking=True)

    def finish(self) -> None:
        self._stream.synchronize()

    def _buffer(self, key: Hashable, shape: torch.Size) -> tuple[torch.Tensor, torch.cuda.Event]:
        if key not in self._buffers or self._buffers[key][0].shape != shape:
            self._buffers[key] = (torch.empty(shape, dtype=torch.float32, device="cpu", pin_memory=True),
                                  torch.cuda.Event())
        return self._buffers[key]

    @contextlib.contextmanager
    def _on_copy_stream(self, copied: torch.cuda.Event):
        """The stream of the copies as the current one."""
        program = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(program)
        with torch.cuda.stream(self._stream):
            yield
        copied.record(self._stream)
        program.wait_stream(self._stream)


class Copiers(dict):
    """{device: its copier}, made when a device is first asked for."""

    def __missing__(self, device: torch.device) -> Copier:
        self[device] = CudaCopier(device) if device.type == "cuda" else Copier()
        return self[device]


def _exchanged(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as it is exchanged: dense, float32, in row-major order."""
    dense = tensor.to_dense() if tensor.is_sparse else tensor
    return dense.detach().to(torch.float32).contiguous()
