"""Repeated attacks on the promises of `docs/security.md`, one module a noun, run by `make soak` with release numbers."""
