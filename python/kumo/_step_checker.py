"""Step checker: whether a program's first blocks fit their mode. In block mode the program steps, in gradient mode
it gives gradients and leaves the steps to the servers."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ._library import KumoError

if TYPE_CHECKING:
    from ._worker import Block

# Blocks of gradient mode are of one minibatch each, beside which a comparison of all weights is expensive.
_COMPARED_BLOCKS = 8
# A rate of 0 in the first step, or steps that a GradScaler leaves out, are no mistake.
_MINIBATCHES_WITHOUT_STEP = 8


class StepChecker:
    """Raises a KumoError for a block that shows a mistake of the program.

    model: the adapted model; its words name the remedy.
    trained: names of the trained tensors.
    is_changed: whether a tensor differs from its values at the start of the block. It compares all elements.

    Each Worker has one checker, used by its thread at the end of each block. Blocks after the first ones cost nothing.
    """

    def __init__(self, model: Any, trained: Sequence[str], is_changed: Callable[[str], bool]):
        self._model, self._trained, self._is_changed = model, trained, is_changed
        self._has_moved = False  # a trained weight, in an earlier block
        self._has_gradients = False  # of an earlier block
        self._minibatches = 0  # of blocks in which none has moved
        self._gradient_blocks = 0  # blocks of gradient mode whose weights were compared

    def check(self, block: Block) -> None:
        """Whether the program steps in block mode, and leaves the steps to the servers in gradient mode."""
        if block.mode == "gradients":
            self._check_not_stepped(block)
        else:
            self._check_stepped(block)

    def check_gradients(self, block: Block, are_missing: bool, are_zero: bool) -> None:
        """are_missing: no trained tensor has a gradient. are_zero: all gradients are 0."""
        # Later gradients may well be zero, as those of a hinge loss.
        if are_missing or are_zero and not self._has_gradients and block.round == 0:
            raise KumoError(f"{block._place}: no parameter has a gradient at the end of the block; "
                            f"{self._model.how_to_give_gradients}")
        self._has_gradients = True

    def _check_stepped(self, block: Block) -> None:
        # Later blocks may well change nothing, as those of a hinge loss, also for a worker that comes later.
        if self._has_moved or block.round > 0 and self._minibatches == 0:
            return
        self._has_moved = any(self._is_changed(name) for name in self._trained)
        if self._has_moved or not any(block.learning_rates) or self._model.has_zero_rates:
            return
        self._minibatches += len(block.learning_rates)
        if self._minibatches > _MINIBATCHES_WITHOUT_STEP:
            raise KumoError(f"{block._place}: no trained weight has changed; {self._model.how_to_step}")

    def _check_not_stepped(self, block: Block) -> None:
        """The next block undoes each change, such as a step or the clipping of weights."""
        if self._gradient_blocks >= _COMPARED_BLOCKS:
            return
        self._gradient_blocks += 1
        for name in self._trained:
            if name not in self._model.renormalised and self._is_changed(name):
                raise KumoError(f"{block._place}: tensor {name} has been changed, but in gradient mode the servers "
                                "step, and the change is lost; use sync.mode = block, without sync.warmup_samples")
