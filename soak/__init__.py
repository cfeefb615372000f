"""Repeated attacks on the promises of `docs/security.md`, one module a noun; `make soak` runs them with release numbers."""
