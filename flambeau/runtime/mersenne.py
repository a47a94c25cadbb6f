"""The random number engine of the CPU: Mersenne twister 19937, one stream of 32-bit words.

Matsumoto and Nishimura, "Mersenne Twister", ACM TOMACS 8(1), 1998, with the seeding of 2002.
NumPy's bit generator keeps the words' state and makes few of them, native code makes many
(`twister`); this file keeps what surrounds them: the seed, one cached normal and the state's
5056-byte form, which PyTorch reads and writes too.

Invariant: all words leave in one order, whatever the number taken at a time. A law that takes
several lots of words holds `lock` meanwhile, so that threads never share one law's words.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from flambeau.core.errors import OpError, ValueRangeError, complaint
from flambeau.runtime import box_muller, twister

DEFAULT_SEED = 67280421310721  # what a fresh generator starts from
STATE_SIZE = 5056  # bytes
BLOCK = 624  # words made at a time
FEW = 64  # below this many words NumPy's plainest call is the quickest
MANY = 4096  # from here on native code makes them

# Where things lie in the state, in bytes.
SEED, LEFT, NEXT = slice(0, 8), slice(8, 16), slice(16, 24)
KEY, NORMAL, HAS_NORMAL, FLOAT_CACHE = (
    slice(24, 5016), slice(5024, 5032), slice(5040, 5044), slice(5048, 5056))


class Engine:
    """A stream of 32-bit words with a seed and one cached normal.

    `cached_normal` is the second number of the last pair of normals, not yet scaled, or None.
    """

    __slots__ = ("_float_cache", "_fresh", "_numbers", "_seed", "cached_normal", "lock")
    cached_normal: float | None
    _numbers: np.random.Generator | None

    def __init__(self, seed: int = DEFAULT_SEED):
        self.lock = threading.RLock()
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> Engine:
        """Start over from `seed` mod 2^32; `initial_seed` keeps 64 bits of it."""
        number = seed_number(seed)
        with self.lock:
            self._seed = number % (1 << 64)
            self._numbers = None
            self._fresh = True  # no block made yet; only the state's bytes tell
            self.cached_normal = None
            self._float_cache = bytes(8)
        return self

    def initial_seed(self) -> int:
        return self._seed

    def random_seed(self) -> int:
        """Start over from 53 bits of the operating system's randomness; the seed is returned."""
        seed = int.from_bytes(os.urandom(8), "little") >> 11
        self.manual_seed(seed)
        return seed

    # -- words

    def words(self, n: int) -> np.ndarray:
        """The next n words, uint32."""
        with self.lock:
            numbers = self.numbers(n)
            if n < FEW:
                return numbers.bit_generator.random_raw(n).astype(np.uint32)
            if n >= MANY:
                return twister.words(numbers.bit_generator.ctypes.state_address, n)
            return numbers.integers(0, 1 << 32, n, dtype=np.uint32)

    def wide_words(self, n: int) -> np.ndarray:
        """n numbers of 64 bits, two words each, the first word on top."""
        with self.lock:
            numbers = self.numbers(n)
            if n < FEW:
                words = numbers.bit_generator.random_raw(2 * n)
                return (words[0::2] << np.uint64(32)) | words[1::2]
            if n >= MANY:
                pairs = self.words(2 * n).view("<u8")
                return (pairs << np.uint64(32)) | (pairs >> np.uint64(32))
            return numbers.integers(0, 1 << 64, n, dtype=np.uint64)

    def unit24(self, n: int) -> np.ndarray:
        """n float32 in [0, 1): the low 24 bits of a word each."""
        words = self.words(n)
        words &= np.uint32(0xFFFFFF)
        units = words.view(np.int32).astype(np.float32)
        units *= np.float32(2.0**-24)
        return units

    def low53(self, n: int) -> np.ndarray:
        """n uint64 below 2^53: the low bits of a wide word each."""
        wide = self.wide_words(n)
        wide &= np.uint64((1 << 53) - 1)
        return wide

    def choose(self, out: np.ndarray, limit: int, value: np.ndarray) -> None:
        """`value` where a number of `low53` is below `limit`, else 0, all over a contiguous out."""
        with self.lock:
            state = self.numbers(out.size).bit_generator.ctypes.state_address
            twister.chosen(state, out, limit, value)

    def fill_normals(self, out: np.ndarray, mean: float, std: float) -> None:
        """Normals in blocks all over a contiguous float32 array; see `box_muller`."""
        with self.lock:
            state = self.numbers(out.size).bit_generator.ctypes.state_address
            box_muller.fill(state, out, mean, std)

    def address(self) -> int:
        """Where the state is that native code draws from, until the next seed. Hold `lock`."""
        return self.numbers().bit_generator.ctypes.state_address

    def unit53(self, n: int) -> np.ndarray:
        """n float64 in [0, 1): the low 53 bits of a wide word each."""
        units = self.low53(n).view(np.int64).astype(np.float64)
        units *= 2.0**-53
        return units

    def numbers(self, n: int = 1) -> np.random.Generator:
        """NumPy's laws over this very stream, of which n words at least will be drawn.

        For laws whose numbers need not be PyTorch's. Hold `lock` while drawing.
        """
        if self._numbers is None:  # on first use: numpy.random is slow to import
            bits = np.random.MT19937(0)
            np.random.RandomState(bits).seed(self._seed & 0xFFFFFFFF)
            self._numbers = np.random.Generator(bits)
        if n:
            self._fresh = False
        return self._numbers

    # -- state

    def get_state(self) -> np.ndarray:
        """The 5056 bytes of `torch.get_rng_state()`, uint8."""
        with self.lock:
            twisted = self.numbers(0).bit_generator.state["state"]
            state = np.zeros(STATE_SIZE, np.uint8)
            state[SEED].view("<u8")[0] = self._seed
            state[LEFT].view("<i4")[:] = BLOCK + 1 - twisted["pos"], 1
            state[NEXT].view("<u8")[0] = 0 if self._fresh else twisted["pos"]
            state[KEY].view("<u8")[:] = twisted["key"]
            if self.cached_normal is not None:
                state[NORMAL].view("<f8")[0] = self.cached_normal
                state[HAS_NORMAL].view("<i4")[0] = 1
            state[FLOAT_CACHE] = np.frombuffer(self._float_cache, np.uint8)
            return state

    def set_state(self, state: np.ndarray) -> Engine:
        """Continue from bytes that `get_state`, or PyTorch, gave."""
        state = checked_state(state)
        left, taken = int(state[LEFT].view("<i4")[0]), int(state[NEXT].view("<u8")[0])
        key = state[KEY].view("<u8").astype(np.uint32)
        with self.lock:
            self._seed = int(state[SEED].view("<u8")[0])
            self.numbers(0).bit_generator.state = {
                "bit_generator": "MT19937", "state": {"key": key, "pos": BLOCK + 1 - left}}
            self._fresh = left == 1 and taken == 0
            has_normal = bool(state[HAS_NORMAL].view("<i4")[0])
            self.cached_normal = float(state[NORMAL].view("<f8")[0]) if has_normal else None
            self._float_cache = state[FLOAT_CACHE].tobytes()
        return self

    def clone(self) -> Engine:
        """Another engine that goes on with the same numbers."""
        return Engine(0).set_state(self.get_state())

    def __reduce__(self):
        return restored, (self.get_state().tobytes(),)


def restored(state: bytes) -> Engine:
    """The engine that was pickled as these bytes."""
    return Engine(0).set_state(np.frombuffer(state, np.uint8))


def seed_number(seed: Any) -> int:
    """`seed` as an integer within -2^63 .. 2^64 - 1; fractions are cut off, as PyTorch does."""
    try:
        number = int(seed) if not isinstance(seed, (str, bytes)) else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None:
        raise OpError(complaint("manual_seed", "the seed must be an integer",
                                {"seed": repr(seed)}, "Pass an int."))
    if not -(1 << 63) <= number < 1 << 64:
        raise ValueRangeError(complaint(
            "manual_seed", "the seed must be in [-2^63, 2^64)", {"seed": number},
            "Overflow when unpacking long long: take it modulo 2**64."))
    return number


def checked_state(state: np.ndarray) -> np.ndarray:
    """`state` as contiguous uint8, or an error if no engine could have written it."""
    state = np.ascontiguousarray(state)
    if state.dtype != np.uint8:
        raise ValueRangeError(complaint("set_state", "the state must be of uint8",
                                        {"dtype": state.dtype}, "Pass what get_state gave."))
    if state.size != STATE_SIZE:
        raise OpError(complaint(
            "set_state", f"Expected a CPUGeneratorImplState of size {STATE_SIZE} "
            f"but found the input RNG state size to be {state.size}", {"bytes": state.size},
            "Pass what get_state gave."))
    state = state.reshape(-1)
    left, seeded = state[LEFT].view("<i4").tolist()
    taken = int(state[NEXT].view("<u8")[0])
    if not 1 <= left <= BLOCK or not seeded or taken > BLOCK:
        raise OpError(complaint(
            "set_state", "Invalid mt19937 state: left must be in [1, 624], seeded not 0, "
            "next at most 624", {"left": left, "seeded": seeded, "next": taken},
            "Pass what get_state gave."))
    return state
