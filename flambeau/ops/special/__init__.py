"""Special functions: vectorised NumPy in float64, each with its formula and where it is from."""
