"""The engine: known words, seeding, the state's bytes, threads."""

import copy
import pickle
import threading

import numpy as np
import pytest

from flambeau.runtime.mersenne import DEFAULT_SEED, FEW, STATE_SIZE, Engine


def test_words_are_those_of_the_published_generator():
    words = Engine(5489).words(10_000)
    assert words[:3].tolist() == [3499211612, 581869302, 3890346734]
    assert words[-1] == 4123659995  # which the C++ standard demands of std::mt19937


def test_known_uniforms_of_seed_0():
    assert Engine(0).unit24(3).tolist() == [
        0.49625658988952637, 0.7682217955589294, 0.08847743272781372]


@pytest.mark.parametrize("pieces", [(1, 2, 3, 700, 5), (FEW - 1, FEW, FEW + 1), (624, 624, 0, 1)])
def test_words_do_not_depend_on_the_number_taken_at_a_time(pieces):
    engine = Engine(3)
    parts = [engine.words(n) for n in pieces]
    assert all(part.dtype == np.uint32 for part in parts)
    assert np.array_equal(np.concatenate(parts), Engine(3).words(sum(pieces)))


@pytest.mark.parametrize("n", [0, 1, FEW - 1, FEW, 1000])
def test_wide_words_have_the_first_word_on_top(n):
    words = Engine(3).words(2 * n).astype(np.uint64)
    wide = Engine(3).wide_words(n)
    assert wide.dtype == np.uint64
    assert np.array_equal(wide, words[0::2] << np.uint64(32) | words[1::2])


@pytest.mark.parametrize(("seed", "alike"), [(2**32 + 5, 5), (-1, 2**32 - 1), (3.7, 3)])
def test_seeds_count_modulo_2_to_the_32(seed, alike):
    assert np.array_equal(Engine(seed).words(9), Engine(alike).words(9))


def test_initial_seed_keeps_64_bits():
    assert Engine().initial_seed() == DEFAULT_SEED
    assert Engine(-1).initial_seed() == 2**64 - 1
    assert Engine(2**40).initial_seed() == 2**40


def test_random_seed_starts_over_from_53_bits():
    engine = Engine(0)
    seed = engine.random_seed()
    assert 0 <= seed < 1 << 53
    assert engine.initial_seed() == seed
    assert np.array_equal(engine.words(5), Engine(seed).words(5))


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seeds_beyond_64_bits_are_refused(seed):
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        Engine(seed)


@pytest.mark.parametrize("seed", ["1", None, float("nan"), [1]])
def test_seeds_that_are_no_numbers_are_refused(seed):
    engine = Engine(4)
    with pytest.raises(RuntimeError, match="the seed must be an integer"):
        engine.manual_seed(seed)
    assert np.array_equal(engine.words(5), Engine(4).words(5))


@pytest.mark.parametrize("taken", [0, 1, 623, 624, 625, 2000])
def test_state_round_trip(taken):
    engine = Engine(8)
    engine.words(taken)
    engine.cached_normal = -1.5
    state = engine.get_state()
    assert state.dtype == np.uint8
    assert state.shape == (STATE_SIZE,)
    other = Engine(1).set_state(state)
    assert np.array_equal(other.get_state(), state)
    assert (other.initial_seed(), other.cached_normal) == (8, -1.5)
    assert np.array_equal(other.words(700), engine.words(700))


def test_state_fields_after_seeding_and_at_a_blocks_end():
    engine = Engine(7)
    fields = engine.get_state()
    assert fields[8:24].view("<i4").tolist() == [1, 1, 0, 0]
    engine.words(624)
    fields = engine.get_state()
    assert fields[8:24].view("<i4").tolist() == [1, 1, 624, 0]
    engine.words(1)
    assert engine.get_state()[8:24].view("<i4").tolist() == [624, 1, 1, 0]


def test_the_float_cache_is_carried():
    state = Engine(7).get_state()
    state[5048:5053] = 1, 2, 3, 4, 1
    assert np.array_equal(Engine(0).set_state(state).get_state(), state)


def test_seeding_drops_the_cached_normal():
    engine = Engine(7)
    engine.cached_normal = 1.0
    assert engine.manual_seed(7).cached_normal is None


def test_states_of_another_size_are_refused():
    with pytest.raises(RuntimeError, match="Expected a CPUGeneratorImplState of size 5056 but "
                                           "found the input RNG state size to be 5"):
        Engine().set_state(np.zeros(5, np.uint8))
    with pytest.raises(ValueError, match="uint8"):
        Engine().set_state(np.zeros(STATE_SIZE, np.int64))


@pytest.mark.parametrize(("at", "value"), [(8, 0), (8, 626), (12, 0), (16, 625)])
def test_states_that_no_engine_wrote_are_refused(at, value):
    state = Engine(7).get_state()
    state[at:at + 4].view("<i4")[0] = value
    engine = Engine(3)
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        engine.set_state(state)
    assert np.array_equal(engine.words(5), Engine(3).words(5))


@pytest.mark.parametrize("copied", [
    Engine.clone, copy.deepcopy, lambda engine: pickle.loads(pickle.dumps(engine))])
def test_copies_go_on_with_the_same_numbers(copied):
    engine = Engine(5)
    engine.words(11)
    other = copied(engine)
    assert np.array_equal(other.words(700), engine.words(700))


def test_threads_share_no_words():
    engine, parts = Engine(2), []

    def take():
        for _ in range(50):
            parts.append(engine.words(100))

    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(np.sort(np.concatenate(parts)), np.sort(Engine(2).words(10_000)))
