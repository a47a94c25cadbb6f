"""`torch.cuda.random`: the GPU's generators."""

from flambeau.devices.absent import namespace

_NAMES = namespace("cuda")
for _name in (
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all",
    "seed", "seed_all", "set_rng_state", "set_rng_state_all",
):  # fmt: skip
    globals()[_name] = _NAMES[_name]
