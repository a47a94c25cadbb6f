"""Scalar expressions, loop nests over them, and the interpreter that is the compiler's oracle."""
