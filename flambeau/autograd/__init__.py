"""Reverse-mode automatic differentiation: tape, engine, modes, custom functions."""
