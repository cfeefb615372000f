"""Types of every kind, strategies that combine them, and pydantic's schemas to compare with."""
