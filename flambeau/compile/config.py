"""Limits and switches of `compile`. Assign to them to change them."""

from __future__ import annotations

import os

enabled = os.environ.get("FLAMBEAU_COMPILE") != "0"
"""False runs everything as plain Python."""
cache_size_limit = 8
"""Programs kept for one code object before it runs as plain Python."""
recompile_limit = 8
accumulated_cache_size_limit = 256
failure_limit = 3
"""Captures of one code object that may end with the program's own exception."""
empty_limit = 3
"""Captures without any tensor operation before a place is left alone."""
raise_internal_errors = os.environ.get("FLAMBEAU_CHECK") == "1"
"""Faults of the capture itself raise instead of running the frame as plain Python."""
suppress_errors = True
verbose = False
dynamic_shapes = True
automatic_dynamic_shapes = True
assume_static_by_default = True
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
guard_nn_modules = True
optimize_ddp = True
cache_programs = True
