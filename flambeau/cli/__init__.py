"""The command line: `flambeau run | demo | bench | doctor`, one file a command."""
