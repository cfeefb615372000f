"""Middleware and background execution, with AgentScope's toolkit and with ours."""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from agentscope.tool import Toolkit as AgentScopeToolkit
from agentscope.tool import ToolResponse

from support.agentscope.pair import on_both
from support.agentscope.tools import add, fail, greet, spell, text
from toolcrib.compat.agentscope import Toolkit

TASK = re.compile(r"[A-Za-z0-9]{22}")


async def call(toolkit: Any, tool: str, **arguments: Any) -> list[str]:
    request = {"type": "tool_use", "id": "1", "name": tool, "input": arguments}
    return [chunk.content[-1]["text"] async for chunk in await toolkit.call_tool_function(request)]


async def both(scenario: Callable[[Any], Awaitable[Any]]) -> tuple[Any, Any]:
    return await scenario(AgentScopeToolkit()), await scenario(Toolkit())


async def test_middlewares_are_passed_in_the_same_order() -> None:
    async def scenario(toolkit: Any) -> Any:
        seen: list[str] = []

        def layer(name: str) -> Any:
            async def middleware(kwargs: dict[str, Any], next_handler: Any) -> AsyncGenerator[ToolResponse, None]:
                seen.append(f"{name} before {kwargs['tool_call']['name']}")
                async for chunk in await next_handler(**kwargs):
                    seen.append(f"{name} {chunk.content[-1]['text']}")
                    yield text(f"{name}({chunk.content[-1]['text']})")
                seen.append(f"{name} after")

            return middleware

        toolkit.register_tool_function(spell)
        toolkit.register_middleware(layer("outer"))
        toolkit.register_middleware(layer("inner"))
        return await call(toolkit, "spell", word="ab"), await call(toolkit, "nothing"), seen

    theirs, ours = await both(scenario)

    assert ours == theirs
    assert ours[0] == ["outer(inner(a))", "outer(inner(a-b))"]


async def test_a_middleware_may_redirect_skip_and_repeat() -> None:
    async def scenario(toolkit: Any) -> Any:
        async def middleware(kwargs: dict[str, Any], next_handler: Any) -> AsyncGenerator[ToolResponse, None]:
            name = kwargs["tool_call"]["name"]
            if name == "skip":
                yield text("skipped")
                return
            if name == "redirect":
                kwargs["tool_call"] = {**kwargs["tool_call"], "name": "add"}
            for _ in range(2):
                async for chunk in await next_handler(**kwargs):
                    yield chunk

        toolkit.register_tool_function(add)
        toolkit.register_tool_function(fail)
        toolkit.register_middleware(middleware)
        return [await call(toolkit, name, a=1, b=2) for name in ("skip", "redirect", "add", "fail")]

    theirs, ours = await both(scenario)

    assert ours[:3] == theirs[:3]
    assert [answer.startswith("Error: ") for answer in ours[3]] == [True, True]


async def test_the_texts_about_background_tasks_are_the_same() -> None:
    async def scenario(toolkit: Any) -> Any:
        gate = asyncio.Event()

        async def slow(word: str) -> ToolResponse:
            """Wait for the gate."""
            await gate.wait()
            return text(word)

        toolkit.register_tool_function(slow, async_execution=True)
        toolkit.register_tool_function(greet, async_execution=True)
        said: list[str] = []

        async def start(tool: str, **arguments: Any) -> str:
            said.extend(await call(toolkit, tool, **arguments))
            found = TASK.search(said[-1])
            assert found
            return found.group()

        async def record(answer: Awaitable[Any]) -> None:
            said.append((await answer).content[-1]["text"])

        first, second = await start("slow", word="one"), await start("slow", word="two")
        await asyncio.sleep(0)
        said.append(str((first in toolkit._async_tasks, len(toolkit._async_tasks))))
        await record(toolkit.view_task(first))
        await record(toolkit.wait_task(first, timeout=0.01))
        await record(toolkit.cancel_task(second))
        gate.set()
        await record(toolkit.wait_task(first))
        await record(toolkit.view_task(first))
        third = await start("greet", name="Ada")
        await asyncio.sleep(0.05)
        said.append(str(third in toolkit._async_results))
        await record(toolkit.cancel_task(third))
        await record(toolkit.view_task(third))
        await record(toolkit.cancel_task("nothing"))
        return [TASK.sub("<task>", line) for line in said]

    theirs, ours = await both(scenario)

    assert ours == theirs


@on_both
async def test_the_list_of_middlewares_can_be_replaced(make: Any) -> None:
    async def first(kwargs: dict[str, Any], next_handler: Any) -> AsyncGenerator[ToolResponse, None]:
        yield text("first")

    async def second(kwargs: dict[str, Any], next_handler: Any) -> AsyncGenerator[ToolResponse, None]:
        yield text("second")

    toolkit = make()
    toolkit.register_middleware(first)
    toolkit._middlewares = [second]
    replaced = await call(toolkit, "any")
    toolkit._middlewares.clear()
    toolkit._middlewares.append(first)

    assert replaced == ["second"]
    assert await call(toolkit, "any") == ["first"]
    assert toolkit._middlewares == [first]
