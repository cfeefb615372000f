"""Helpers of the tests in `tests_py/agentscope`, which run in an environment with AgentScope."""
