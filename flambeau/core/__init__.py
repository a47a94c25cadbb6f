"""What every other layer may use: dtypes, devices, specs, errors, contexts, pytrees."""
