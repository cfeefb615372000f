"""Compatibility layers: the same core with the names and results of other tool libraries."""
