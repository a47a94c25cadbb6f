"""What compiled functions compute is tested on their programs: calls wait for them. The tests of
the tiers themselves ask for the background."""

import os

os.environ.setdefault("FLAMBEAU_TIER", "sync")
