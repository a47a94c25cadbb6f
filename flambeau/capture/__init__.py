"""Capture: from Python bytecode to a graph, guards and resume functions."""
