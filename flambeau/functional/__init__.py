"""`flambeau.nn.functional`: composites under PyTorch's names, written with public functions.

Each file holds one family and registers its functions with `@functional`.
"""
