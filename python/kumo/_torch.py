"""A torch.nn.Module as Worker needs it. Imported only if the user's model is one."""
from __future__ import annotations

import contextlib
import inspect
import random

import numpy as np
import torch

from . import _library as c


class TorchModel:
    """Parameters and buffers of a module, and the state of its optimizer.

    Tensors are exchanged as float32, in the order of module.named_parameters() (shared ones once), then
    of the floating-point buffers that state_dict() has. Buffers are averaged over the partitions; other
    buffers, such as num_batches_tracked, stay the process's own.
    """

    how_to_give_gradients = "call zero_grad() before backward(), not after step()"

    def __init__(self, module: torch.nn.Module, optimizer: torch.optim.Optimizer | None):
        self.module, self.optimizer = module, optimizer
        self._tensors = _tensors_of(module)
        self._kinds: dict[str, int] = {}
        for name, tensor in self._tensors.items():
            if not isinstance(tensor, torch.nn.Parameter):
                self._kinds[name] = c.STATISTICS
            elif not tensor.requires_grad:
                self._kinds[name] = c.FROZEN
            else:
                self._kinds[name] = c.UNDECAYED if tensor.ndim <= 1 else c.WEIGHTS
        if not any(kind in (c.WEIGHTS, c.UNDECAYED) for kind in self._kinds.values()):
            raise c.KumoError("the model has no parameter that requires a gradient")
        own = {id(parameter) for parameter in module.parameters()}
        if optimizer is not None:
            others = [p for group in optimizer.param_groups for p in group["params"] if id(p) not in own]
            if others:
                raise c.KumoError(f"the optimizer steps {len(others)} parameters that the model does not "
                                  f"have, one of shape {list(others[0].shape)}; make the optimizer of "
                                  "model.parameters(), after the model has its last form")
        self._states = _states_of(optimizer)

    def check(self) -> None:
        """Errors name the first change of the model since its Worker was made. Buffers may be replaced."""
        now = _tensors_of(self.module)
        for name in self._tensors.keys() | now.keys():
            before, after = self._tensors.get(name), now.get(name)
            change = None
            if before is None:
                change = "is new"
            elif after is None:
                change = "is gone"
            elif isinstance(before, torch.nn.Parameter) and before is not after:
                change = "has been replaced"
            elif tuple(before.shape) != tuple(after.shape):
                change = f"is of shape {list(after.shape)} instead of {list(before.shape)}"
            if change is not None:
                raise c.KumoError(f"tensor {name} of the model {change} since the Worker was made; change "
                                  "the model before that")
        self._tensors = now

    @property
    def device(self) -> str:
        return str(next(iter(self._tensors.values())).device)

    @property
    def optimizer_states(self) -> int:
        return len(self._states.arrays)

    def tensors(self) -> list[tuple[str, tuple[int, ...], int]]:
        return [(name, tuple(tensor.shape), self._kinds[name]) for name, tensor in self._tensors.items()]

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._tensors[name].shape)

    def is_narrow(self, name: str) -> bool:
        return self._tensors[name].element_size() < 4

    def export_weights(self, name: str) -> torch.Tensor:
        return _on_host(self._tensors[name])

    def export_gradient(self, name: str) -> torch.Tensor | None:
        """None if the backward pass gave the parameter no gradient."""
        gradient = self._tensors[name].grad
        if gradient is None:
            return None
        return _on_host(gradient.to_dense() if gradient.is_sparse else gradient)

    def load(self, name: str, read) -> None:
        _load(self._tensors[name], read)

    def loaded(self) -> None:
        pass

    def seed(self, seed: int) -> None:
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed % 2**63)

    def begin_block(self, read_state, steps_before: int) -> None:
        """read_state: None if the optimizer starts without state; else reads array i of a tensor."""
        self.module.train()
        self.module.zero_grad(set_to_none=True)
        if self.optimizer is None:
            return
        self.optimizer.state.clear()
        if read_state is None or steps_before == 0:
            return
        for name, parameter in self._stepped():
            state = self._states.scalars_at(steps_before)
            for i, key in enumerate(self._states.arrays):
                state[key] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
                _load(state[key], lambda address, i=i: read_state(name, i, address))
            self.optimizer.state[parameter] = state

    def end_block(self, write_state) -> None:
        """write_state(name, i, tensor): hands in array i of the optimizer's state."""
        if self.optimizer is None or write_state is None:
            return
        for name, parameter in self._stepped():
            state = self.optimizer.state.get(parameter, {})
            for i, key in enumerate(self._states.arrays):
                if (array := state.get(key)) is not None:
                    write_state(name, i, _on_host(array))

    def _stepped(self):
        """Names and parameters that the optimizer steps."""
        of = {id(p) for group in self.optimizer.param_groups for p in group["params"]}
        return [(name, p) for name, p in self._tensors.items()
                if id(p) in of and self._kinds[name] in (c.WEIGHTS, c.UNDECAYED)]

    @contextlib.contextmanager
    def evaluating(self):
        self.module.eval()
        with torch.no_grad():
            yield
        self.module.train()


def _tensors_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The tensors that are exchanged: parameters, then floating-point buffers."""
    tensors: dict[str, torch.Tensor] = {}
    for name, parameter in module.named_parameters():
        if not parameter.is_floating_point():
            raise c.KumoError(f"parameter {name} is of {parameter.dtype}; float32 is exchanged")
        tensors[name] = parameter
    stored = module.state_dict().keys()
    for name, buffer in module.named_buffers():
        if name in stored and buffer.is_floating_point():
            tensors[name] = buffer
    return {name: tensor for name, tensor in tensors.items() if tensor.numel() > 0}


class _States:
    """State of an optimizer per parameter: arrays of the parameter's shape, and a step count."""

    def __init__(self, arrays=(), counts=None):
        self.arrays = list(arrays)
        self._counts = counts or {}

    def scalars_at(self, steps: int) -> dict:
        return {key: torch.full_like(value, steps) if torch.is_tensor(value) else type(value)(steps)
                for key, value in self._counts.items()}


def _states_of(optimizer) -> _States:
    """The state that an optimizer has after a step, found by a step of one like it."""
    if optimizer is None:
        return _States()
    probe = torch.nn.Parameter(torch.zeros(2, 3))
    takes = inspect.signature(type(optimizer)).parameters
    try:
        twin = type(optimizer)([probe], **{key: value for key, value in optimizer.defaults.items()
                                           if key in takes})
        probe.grad = torch.zeros(2, 3)
        twin.step()
    except Exception:  # an optimizer of the user's, with other arguments: nothing of it can be carried
        return _States()
    state = twin.state.get(probe, {})
    arrays = [key for key, value in state.items() if torch.is_tensor(value) and value.shape == probe.shape]
    counts = {key: value for key, value in state.items()
              if key not in arrays and (torch.is_tensor(value) and value.ndim == 0
                                        or isinstance(value, (int, float)))}
    return _States(arrays, counts)


def _on_host(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to(device="cpu", dtype=torch.float32).contiguous()


def _load(tensor: torch.Tensor, read) -> None:
    """Fills a tensor by read(address), which writes float32 numbers in row-major order."""
    with torch.no_grad():
        if tensor.device.type == "cpu" and tensor.dtype == torch.float32 and tensor.is_contiguous():
            read(tensor.data_ptr())
            return
        host = torch.empty(tensor.shape, dtype=torch.float32, pin_memory=tensor.is_cuda)
        read(host.data_ptr())
        tensor.copy_(host)


def total(means) -> float:
    """The sum of (mean, samples) pairs, whose means may be tensors on a device."""
    return float(sum(torch.as_tensor(mean).detach().double() * samples for mean, samples in means))
