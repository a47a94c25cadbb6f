"""Eager kernels from the loop compiler and the templates, one per signature.

Importing this package installs nothing; `providers.install()` does. A kernel is compiled when its
signature is first met and kept on disk, and not in the background: which of two kernels has run
must never decide the bits of a result.
"""
