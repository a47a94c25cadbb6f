"""`flambeau bench`: how much this machine computes, and how fast training steps are."""
