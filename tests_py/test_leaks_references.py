"""References after one call: cycles, abandoned streams, frames of errors, responses; and the debugging allocator."""

import asyncio
import gc
import logging
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from support.streams import block, echo, python, read, toolkit
from toolcrib import Toolkit, ToolResponse


class Watched:
    """An object whose end can be seen."""


def test_ten_thousand_tools_that_were_removed_are_gone() -> None:
    kit = Toolkit()
    functions: list[weakref.ref[Any]] = []
    tools: list[weakref.ref[Any]] = []

    for number in range(10_000):

        def tool(number: int = number) -> int:
            return number

        kit.register_tool_function(tool)
        functions.append(weakref.ref(tool))
        tools.append(weakref.ref(kit.tools["tool"]))
        kit.remove_tool_function("tool")
    del tool
    gc.collect()

    assert not any(reference() for reference in functions)
    assert not any(reference() for reference in tools)


def test_a_toolkit_that_its_own_tool_refers_to_is_collected() -> None:
    class Agent:
        def __init__(self) -> None:
            self.kit = Toolkit()
            self.kit.register_tool_function(self.act, preset_kwargs={"me": self}, postprocess_func=self.look)

        def act(self, me: Any = None) -> str:
            return "acted"

        def look(self, call: Any, response: ToolResponse) -> None: ...

    agent = Agent()
    asyncio.run(agent.kit.call("act"))
    references: list[weakref.ref[Any]] = [weakref.ref(thing) for thing in (agent, agent.kit, agent.kit.tools["act"])]

    del agent
    gc.collect()

    assert not any(reference() for reference in references)


@pytest.mark.parametrize("steps", [0, 1])
async def test_a_stream_that_its_own_input_refers_to_is_collected(steps: int) -> None:
    async def endless(thing: Any) -> AsyncIterator[Any]:
        while True:
            yield "again"

    watched = Watched()
    call = block("endless", thing=[watched])
    stream = await toolkit(endless).call_tool_function(call)
    for _ in range(steps):
        await anext(stream)
    watched.stream = stream  # type: ignore[attr-defined]
    reference = weakref.ref(watched)

    del watched, call, stream
    gc.collect()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gc.collect()

    assert reference() is None


async def test_a_stream_that_waits_in_a_cycle_is_collected() -> None:
    watched = Watched()

    async def wait(thing: Any) -> None:
        await thing[0].future

    watched.future = asyncio.get_running_loop().create_future()  # type: ignore[attr-defined]
    stream = toolkit(wait).call_tool_function(block("wait", thing=[watched]))
    step = stream.__anext__()
    step.send(None)
    watched.stream = stream  # type: ignore[attr-defined]
    reference = weakref.ref(watched)

    del watched, stream, step
    gc.collect()

    assert reference() is None


@pytest.mark.parametrize("run_in", ["inline", "thread"])
@pytest.mark.parametrize("name", ["failing", "yielding"])
async def test_only_the_exception_of_a_response_keeps_the_frame_of_the_tool(
    name: str, run_in: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "toolcrib")  # a record would keep it, too
    references: list[weakref.ref[Any]] = []

    def failing() -> str:
        local = Watched()
        references.append(weakref.ref(local))
        raise ValueError("no")

    def yielding() -> Iterator[str]:
        local = Watched()
        references.append(weakref.ref(local))
        yield "one"
        raise ValueError("no")

    stream = toolkit(failing, yielding, run_in=run_in).call_tool_function(block(name))

    responses = await read(stream)
    kept = references[0]()
    responses[-1].exception = None
    is_kept, kept = kept is not None, None
    for _ in range(1000):
        gc.collect()
        if references[0]() is None:
            break
        await asyncio.sleep(0.005)

    assert responses[-1].code == "failed"
    assert is_kept
    assert references[0]() is None


async def test_a_stream_lets_go_of_what_it_delivered() -> None:
    async def generator() -> AsyncIterator[ToolResponse]:
        for _ in range(3):
            yield ToolResponse([])

    stream = toolkit(generator).call_tool_function(block("generator"))

    references = [weakref.ref(await anext(stream)) for _ in range(3)]
    early = [reference() is None for reference in references]
    assert [response.content for response in await read(stream)] == [[]]

    # The last one is kept as long as an interruption would have to repeat it.
    assert early[:2] == [True, True]
    assert [reference() for reference in references] == [None, None, None]


async def test_a_stream_that_is_over_lets_go_of_its_call() -> None:
    async def tool(thing: Any) -> str:
        return "done"

    watched = Watched()
    call = block("tool", thing=[watched])
    stream = toolkit(tool).call_tool_function(call)
    reference = weakref.ref(watched)

    await read(stream)
    del watched, call

    assert reference() is None
    assert stream is not None


def test_streams_and_toolkits_are_known_to_the_collector() -> None:
    kit = toolkit(echo)
    stream = kit.call_tool_function(block("echo", text="x"))

    assert gc.is_tracked(stream)
    assert gc.is_tracked(kit)
    assert gc.is_tracked(ToolResponse([]))
    assert kit in gc.get_referents(stream)


def test_a_mixed_workload_survives_the_debugging_allocator() -> None:
    program = """
        import asyncio, gc
        from toolcrib import Toolkit

        kit = Toolkit()

        @kit.tool
        async def agen(n: int):
            for i in range(n):
                yield {"i": i}
                await asyncio.sleep(0)

        @kit.tool
        def thread(n: int):
            for i in range(n):
                yield str(i)

        @kit.tool
        async def fails(n: int):
            raise ValueError(n)

        @kit.tool
        async def forever(n: int):
            await asyncio.sleep(60)

        async def main():
            for n in range(200):
                for name in ("agen", "thread", "fails", "nobody"):
                    stream = kit.call_tool_function({"name": name, "input": {"n": n % 5}})
                    async for _ in stream:
                        if n % 3 == 0:
                            break
                    if n % 2:
                        await stream.aclose()
                task = asyncio.ensure_future(kit.call("forever", n=1))
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                kit.register_tool_function(lambda: n, func_name="temporary")
                await kit.call("temporary")
                kit.remove_tool_function("temporary")
                if n % 50 == 0:
                    gc.collect()

        asyncio.run(main())
        print("survived")
    """

    result = python(program, PYTHONMALLOC="debug", PYTHONASYNCIODEBUG="1")

    assert (result.returncode, result.stdout) == (0, "survived\n"), result.stderr
