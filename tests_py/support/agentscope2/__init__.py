"""Helpers of the tests in `tests_py/agentscope2`, which run in an environment with AgentScope 2.x."""
