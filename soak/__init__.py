"""Repeated attacks on the promises of `docs/security.md`, one module a noun; see `make soak`."""
