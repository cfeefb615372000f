"""Middlewares of AgentScope around those of toolcrib, middlewares of the agent, and tracing."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from agentscope.message import TextBlock, ToolCallBlock
from agentscope.middleware import MiddlewareBase, TracingMiddleware
from agentscope.state import AgentState
from agentscope.tool import ToolChunk, ToolMiddlewareBase, ToolResponse

from support.agentscope2.scene import DESIGNS, Design, Scene, crib, text_of, with_crib
from support.agentscope2.scripted import ScriptedModel, ask, say
from toolcrib.compat.agentscope2 import Toolkit


async def shout(word: str) -> str:
    """Shout."""
    return word.upper()


class Rewriting(ToolMiddlewareBase):  # type: ignore[misc]
    """Rewrite the arguments."""

    async def on_tool_call(self, tool: Any, input_kwargs: Any, next_handler: Any) -> AsyncIterator[ToolChunk]:
        async for chunk in next_handler(**{**input_kwargs, "word": f"{tool.name} {input_kwargs['word']}"}):
            yield chunk


@pytest.mark.parametrize("design", DESIGNS)
async def test_a_middleware_of_agentscope_rewrites_arguments(design: Design) -> None:
    seen = []

    async def watch(kwargs: dict[str, Any], next_handler: Any) -> AsyncIterator[Any]:
        seen.append(dict(kwargs["tool_call"]["input"]))
        async for response in await next_handler(**kwargs):
            yield response

    kit = crib([shout])
    kit.register_middleware(watch)
    toolkit = with_crib(design, kit, middlewares=[Rewriting()])
    scene = Scene(toolkit, ScriptedModel(ask(("shout", {"word": "hey"})), say("done")))

    await scene.send()

    assert seen == [{"word": "shout hey"}]
    assert scene.texts() == ["SHOUT HEY"]


async def test_chunks_that_a_middleware_changes_are_the_result() -> None:
    class Adding(ToolMiddlewareBase):  # type: ignore[misc]
        async def on_tool_call(self, tool: Any, input_kwargs: Any, next_handler: Any) -> AsyncIterator[ToolChunk]:
            async for chunk in next_handler(**input_kwargs):
                yield chunk
            yield ToolChunk(content=[TextBlock(text="!")])

    toolkit = Toolkit(toolkit=crib([shout]), middlewares=[Adding()])
    call = ToolCallBlock(id="c", name="shout", input='{"word": "hey"}')

    items = [item async for item in toolkit.call_tool(call, AgentState())]

    assert text_of(items[-1]) == "HEY!"
    assert items[-1].id == "c"


async def test_a_middleware_that_changes_nothing_leaves_the_result_of_toolcrib() -> None:
    class Passing(ToolMiddlewareBase):  # type: ignore[misc]
        async def on_tool_call(self, tool: Any, input_kwargs: Any, next_handler: Any) -> AsyncIterator[ToolChunk]:
            async for chunk in next_handler(**input_kwargs):
                yield chunk

    async def measure() -> AsyncIterator[str]:
        """Measure."""
        yield "1"
        yield "10"
        yield "about 12"

    kit = crib()
    kit.register_tool_function(measure, chunks="replace")
    toolkit = Toolkit(toolkit=kit, middlewares=[Passing()])
    seen = []
    kit.subscribe("call_end", lambda event: seen.append(event.call_id))

    items = [item async for item in toolkit.call_tool(ToolCallBlock(id="c", name="measure", input="{}"), AgentState())]

    assert [text_of(item) for item in items] == ["10", "about 12", "about 12"]
    assert seen[0] == "c"


@pytest.mark.parametrize("design", DESIGNS)
async def test_what_a_middleware_raises_is_an_error(design: Design) -> None:
    class Failing(ToolMiddlewareBase):  # type: ignore[misc]
        async def on_tool_call(self, tool: Any, input_kwargs: Any, next_handler: Any) -> AsyncIterator[ToolChunk]:
            raise ValueError("not today")
            yield

    toolkit = with_crib(design, crib([shout]), middlewares=[Failing()])
    scene = Scene(toolkit, ScriptedModel(ask(("shout", {"word": "hey"})), say("done")))

    await scene.send()

    assert scene.states() == ["error"]
    assert scene.texts() == ["not today"]


@pytest.mark.parametrize("design", DESIGNS)
async def test_middlewares_of_the_agent_see_chunks_and_the_response(design: Design) -> None:
    seen: list[str] = []

    class Watching(MiddlewareBase):  # type: ignore[misc]
        async def on_acting(self, agent: Any, input_kwargs: Any, next_handler: Any) -> AsyncIterator[Any]:
            async for item in next_handler(**input_kwargs):
                seen.append(f"{type(item).__name__} {text_of(item)}")
                if isinstance(item, ToolResponse):
                    item.content.append(TextBlock(text=" (seen)"))
                yield item

        async def on_check_permission(self, agent: Any, input_kwargs: Any, next_handler: Any) -> Any:
            seen.append(input_kwargs["tool"].name)
            return await next_handler(**input_kwargs)

    scene = Scene(
        with_crib(design, crib([shout])),
        ScriptedModel(ask(("shout", {"word": "hey"})), say("done")),
        options={"middlewares": [Watching()]},
    )

    await scene.send()

    assert seen == ["shout", "ToolChunk HEY", "ToolResponse HEY"]
    assert scene.texts() == ["HEY (seen)"]


@pytest.mark.parametrize("design", DESIGNS)
async def test_calls_are_traced(design: Design) -> None:
    scene = Scene(
        with_crib(design, crib([shout])),
        ScriptedModel(ask(("shout", {"word": "hey"})), say("done")),
        options={"middlewares": [TracingMiddleware()]},
    )

    await scene.send()

    assert scene.texts() == ["HEY"]
