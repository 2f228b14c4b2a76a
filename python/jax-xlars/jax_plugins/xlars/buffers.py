"""What functions of `buffer_callback` get: a context, and the memory of operands and results.

They are valid during the call only, like those of XLA:CPU.
"""

import jax
import numpy as np
from jax._src.buffer_callback import ExecutionStage


class Context:
    """The context of a call."""

    def __init__(self, stage: int):
        self.stage = ExecutionStage(stage)

    @property
    def stream(self) -> int:
        """There is none on the host."""
        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: XLA FFI GPU context is not available")


class Buffer:
    """An array in memory of the program."""

    def __init__(self, array: np.ndarray, writeable: bool):
        self._array, self.writeable = array, writeable
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        array = self._array.view()
        array.flags.writeable = self.writeable
        return np.array(array, dtype=dtype, copy=copy)

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()
