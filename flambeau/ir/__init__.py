"""Interned nodes and one rewrite driver: what every level of the compiler is written in."""

from flambeau.ir.node import Node, key_of, nodes, postorder
from flambeau.ir.rewrite import RewriteLimit, Rule, rewrite, rule

__all__ = ["Node", "RewriteLimit", "Rule", "key_of", "nodes", "postorder", "rewrite", "rule"]
