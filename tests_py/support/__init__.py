"""Helpers that the tests share; no test imports from another test.

- `streams`: calls, their streams, programs in an interpreter of their own; `loops`: event loops; `waiting`: conditions
- `toolkits`: small toolkits and what they show; `policy`: tools that need permission; `events`: recorded events
- `middleware`, `background`, `tracing`: middlewares, background tasks and spans to look at
- `cancellation`: cancels every kind of tool at every point; `hostile`: programs that must not crash the interpreter
- `process_tools`, `processes`: tools for child processes, and what watches those processes
- `schema`, `extended_models`: types and models, with the schemas that pydantic and AgentScope make of them
- `agentscope`: tools, models and agents for the tests that run with AgentScope installed
"""
