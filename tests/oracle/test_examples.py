"""Every example prints on flambeau what it prints on PyTorch."""

import pytest

from tests.examples.transcript import EXAMPLES, difference, run_example

torch = pytest.importorskip("torch")

# Training amplifies the last bit of a float: the longer, the more. The first lines agree closely.
EXACT = {"tensor_basics": 1e-6, "custom_function": 1e-4, "simple_nn": 1e-3}
CHAOTIC_HEAD = 4


@pytest.mark.parametrize("name", EXAMPLES)
def test_same_output(name):
    ours = run_example(name, on_flambeau=True)
    theirs = run_example(name, on_flambeau=False)
    if name in EXACT:
        assert difference(ours, theirs, EXACT[name]) == ""
    else:
        heads = ["\n".join(text.splitlines()[:CHAOTIC_HEAD]) for text in (ours, theirs)]
        assert difference(*heads, 2e-2) == ""
