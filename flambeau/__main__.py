"""`python -m flambeau` is the `flambeau` command."""

import sys

from flambeau.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
