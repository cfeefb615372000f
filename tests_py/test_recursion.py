"""Tools that call themselves endlessly: an answer or a `RecursionError`, at any recursion limit and in any thread."""

import textwrap

import pytest

from support.streams import python
from toolcrib import ToolResponse

TOOLS = {
    "coroutine": """
        @toolkit.tool
        async def again() -> str:
            return (await toolkit.call("again")).text
    """,
    "value": """
        @toolkit.tool
        async def again() -> str:
            return await toolkit.value("again")
    """,
    "async generator": """
        @toolkit.tool
        async def again():
            async for response in toolkit.call_tool_function({"name": "again", "input": {}}):
                yield response
    """,
    "inline function": """
        @toolkit.tool(run_in="inline")
        def again():
            return toolkit.call("again")
    """,
    "inline generator": """
        @toolkit.tool(run_in="inline")
        def again():
            yield "x"
            return
        @toolkit.tool
        async def outer():
            async for response in toolkit.call_tool_function({"name": "outer", "input": {}}):
                yield response
            async for response in toolkit.call_tool_function({"name": "again", "input": {}}):
                yield response
        start = "outer"
    """,
    "view": """
        view = toolkit.view()
        @toolkit.tool
        async def again() -> str:
            return (await view.call("again")).text
    """,
    "session": """
        session = toolkit.session()
        @toolkit.tool
        async def again() -> str:
            return (await session.call("again")).text
    """,
    "middlewares": """
        async def layer(kwargs, next_handler):
            async for response in next_handler(**kwargs):
                yield response
        for _ in range(9000):
            toolkit.register_middleware(layer)
        @toolkit.tool
        async def again() -> str:
            return "reached"
    """,
    "coroutine middlewares": """
        async def layer(kwargs, next_handler):
            responses = [response async for response in next_handler(**kwargs)]
            return responses[-1]
        for _ in range(9000):
            toolkit.register_middleware(layer)
        @toolkit.tool
        async def again() -> str:
            return "reached"
    """,
    "postprocess": """
        async def more(block, response):
            return await toolkit.call("again")
        async def again() -> str:
            return "x"
        toolkit.register_tool_function(again, postprocess_func=more)
    """,
    "helpers": """
        @toolkit.tool
        async def again() -> str:
            return await one()
        async def one(): return await two()
        async def two(): return (await toolkit.call("again")).text
    """,
}

PROGRAM = """
import asyncio, logging, sys, threading
from toolcrib import Toolkit
logging.disable(logging.CRITICAL)
sys.setrecursionlimit({limit})
toolkit = Toolkit()
start = "again"
{tools}

async def main():
    try:
        response = await toolkit.call(start)
    except RecursionError:
        return "RecursionError"
    return response.text

def run():
    print("answer:", asyncio.run(main())[:100], flush=True)

{how}
assert Toolkit().run("missing").code == "unknown_tool"
"""

STARTED = "thread = threading.Thread(target=run); thread.start(); thread.join()"
HOW = {
    "main thread": "run()",
    "other thread": STARTED,
    "small stack": f"threading.stack_size(256 * 1024)\n{STARTED}",
}


def program(tool: str, limit: int, how: str) -> str:
    tools = textwrap.dedent(TOOLS[tool])
    return PROGRAM.format(limit=limit, tools=tools, how=HOW[how])


@pytest.mark.parametrize("tool", TOOLS)
def test_endless_recursion_ends(tool: str) -> None:
    for limit in (1_000, 8_000, 10_000, 100_000):
        finished = python(program(tool, limit, "main thread"))

        assert finished.returncode == 0, (limit, finished.stderr[-1000:])
        assert "answer:" in finished.stdout


@pytest.mark.parametrize("how", ["other thread", "small stack"])
@pytest.mark.parametrize("tool", ["coroutine", "async generator", "middlewares"])
def test_endless_recursion_ends_in_any_thread(tool: str, how: str) -> None:
    finished = python(program(tool, 100_000, how))

    assert finished.returncode == 0, finished.stderr[-1000:]
    assert "answer:" in finished.stdout


@pytest.mark.parametrize("end", ["cancel", "drop", "raise"])
@pytest.mark.parametrize("tool", ["coroutine", "generator", "middleware"])
def test_calls_that_are_nested_as_deeply_as_possible_can_be_ended(tool: str, end: str) -> None:
    finished = python(f"""
        import asyncio, gc, logging, sys
        from toolcrib import Toolkit
        logging.disable(logging.CRITICAL)
        sys.setrecursionlimit(100_000)
        toolkit = Toolkit(errors="raise")
        depth, gate = 0, None

        async def bottom():
            await gate
            raise KeyError("bottom")

        @toolkit.tool
        async def coroutine() -> str:
            global depth
            depth += 1
            try:
                return (await toolkit.call("coroutine")).text
            except RecursionError:
                return await bottom()

        @toolkit.tool
        async def generator():
            global depth
            depth += 1
            try:
                async for response in toolkit.call_tool_function({{"name": "generator", "input": {{}}}}):
                    yield response
            except RecursionError:
                yield await bottom()

        @toolkit.tool
        async def middleware() -> str:
            return "reached"

        async def layer(kwargs, next_handler):
            global depth
            depth += 1
            try:
                async for response in next_handler(**kwargs):
                    yield response
            except RecursionError:
                yield await bottom()

        if {tool!r} == "middleware":
            for _ in range(20_000):
                toolkit.register_middleware(layer)

        async def main():
            global gate
            gate = asyncio.get_running_loop().create_future()
            if {end!r} == "drop":
                call = toolkit.call({tool!r}).__await__()
                call.send(None)
                del call
                gc.collect()
                return
            task = asyncio.ensure_future(toolkit.call({tool!r}))
            while not depth or not gate._callbacks:
                await asyncio.sleep(0.01)
            if {end!r} == "cancel":
                task.cancel()
            else:
                gate.set_result(None)
            print(type((await asyncio.gather(task, return_exceptions=True))[0]).__name__)

        asyncio.run(main())
        print(depth)
    """)

    assert finished.returncode == 0, finished.stderr[-1000:]
    assert int(finished.stdout.split()[-1]) > 500


DEEP_RESULTS = {
    "list": "value = [value]",
    "tuple": "value = (value,)",
    "dict": "value = {'k': value}",
    "records": "value = Record(value)",
}


@pytest.mark.parametrize("limit", [1000, 200_000])
@pytest.mark.parametrize("nested", DEEP_RESULTS)
def test_a_result_that_is_nested_too_deeply_for_the_stack_is_a_response(nested: str, limit: int) -> None:
    program = f"""
import asyncio, dataclasses, os, sys
from toolcrib import Toolkit

@dataclasses.dataclass
class Record:
    part: object

value = None
for _ in range(100_000):
    {DEEP_RESULTS[nested]}
toolkit = Toolkit()

@toolkit.tool
async def deep():
    return value

sys.setrecursionlimit({limit})
response = asyncio.run(toolkit.call("deep"))
print(response.code, type(value).__name__ in response.text, "<deeply nested dict>" in repr(response), flush=True)
os._exit(0)  # to free the value may take too much of the stack, too
"""

    finished = python(program)

    assert (finished.returncode, finished.stdout) == (0, "None True True\n"), finished.stderr[-2000:]


def test_a_value_that_contains_itself_is_shown_as_by_python() -> None:
    value: list[object] = [1]
    value.append(value)

    assert "metadata={'value': [1, [...]]}" in repr(ToolResponse([], metadata={"value": value}))
