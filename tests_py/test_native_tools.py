"""Native tools: registered, listed, checked, decided, streamed, cancelled, timed out and traced like any other."""

import asyncio
import copy
import functools
import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from support.loops import LoopFactory
from support.streams import NOTE, block, needs_counting, python, read, texts, timeout, toolkit
from support.tracing import Traces
from toolcrib import NativeTool, Policy, Toolkit, ToolResponse, tools
from toolcrib.errors import NativeToolError

QUICK = 0.01  # the shortest interval of reports
LONG = 60


def kit(**options: Any) -> Toolkit:
    return toolkit(tools.wait, run_in="thread", **options)


def test_a_native_tool_says_what_it_is() -> None:
    assert isinstance(tools.wait, NativeTool)
    assert (tools.wait.name, tools.wait.is_streaming, tools.wait.permission) == ("wait", True, "auto")
    assert repr(tools.wait) == "NativeTool(name='wait')"
    assert tools.wait.description is not None
    assert tools.wait.description.startswith("Wait for")
    assert tools.wait.json_schema["function"]["name"] == "wait"


def test_a_native_tool_is_not_made_in_python() -> None:
    with pytest.raises(TypeError):
        NativeTool()


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda tool: pickle.loads(pickle.dumps(tool))])
def test_a_copy_is_the_same_tool(again: Callable[[NativeTool], NativeTool]) -> None:
    assert again(tools.wait).json_schema == tools.wait.json_schema


def test_it_is_listed_with_the_schema_of_its_parameter_type() -> None:
    (schema,) = kit().get_json_schemas()

    function = schema["function"]
    assert function["name"] == "wait"
    assert function["description"] == tools.wait.description
    assert list(function["parameters"]["properties"]) == ["seconds", "every"]
    assert function["parameters"]["required"] == ["seconds"]
    assert "title" not in str(schema)
    assert "format" not in str(schema)


def test_a_tool_that_has_its_result_at_once_gives_it_in_its_first_step() -> None:
    async def run() -> tuple[bool, str]:
        task = asyncio.ensure_future(kit().call("wait", seconds=0))
        await asyncio.sleep(0)
        return task.done(), (await task).text

    assert asyncio.run(run()) == (True, "Waited 0 seconds.")


def test_a_schema_that_was_handed_out_is_a_copy() -> None:
    tools.wait.json_schema["function"]["name"] = "changed"

    assert tools.wait.json_schema["function"]["name"] == "wait"


def test_it_is_registered_like_a_function() -> None:
    own = Toolkit()
    own.create_tool_group("time", "Time.", active=False)
    own.register_tool_function(
        tools.wait, "time", {"every": None}, func_name="pause", func_description="Pause.", tags=["slow"], timeout=5
    )

    tool = own.tools["pause"]

    assert (tool.name, tool.original_name, tool.group) == ("pause", "wait", "time")
    assert (tool.tags, tool.timeout) == (["slow"], 5)
    assert (tool.kind, tool.permission, tool.run_in) == ("think", "auto", "inline")
    assert tool.original_func is tools.wait
    assert own.get_json_schemas() == []
    assert list(tool.json_schema["function"]["parameters"]["properties"]) == ["seconds"]


def test_what_is_said_at_the_registration_counts() -> None:
    tool = kit(kind="other", permission="confirm").tools["wait"]

    assert (tool.kind, tool.permission) == ("other", "confirm")


async def test_it_streams(loop_factory: LoopFactory) -> None:
    responses = await read(kit().call_tool_function(block("wait", seconds=3 * QUICK, every=QUICK)))

    assert [type(response) for response in responses] == [ToolResponse] * 3
    assert [response.text for response in responses] == [
        "Waited 0.01 of 0.03 seconds.",
        "Waited 0.02 of 0.03 seconds.",
        "Waited 0.03 seconds.",
    ]
    assert [response.mode for response in responses] == ["progress", "progress", "result"]
    assert [(response.stream, response.is_last) for response in responses] == [(True, False)] * 2 + [(True, True)]
    assert len({response.id for response in responses}) == 3


async def test_one_result_is_the_last_response() -> None:
    response = await kit().call("wait", seconds=2 * QUICK, every=QUICK)

    assert response.text == "Waited 0.02 seconds."


def test_it_runs_without_an_event_loop_of_the_caller() -> None:
    assert kit().run("wait", seconds=QUICK).text == "Waited 0.01 seconds."


async def test_it_is_iterated_without_a_toolkit() -> None:
    assert await texts(tools.wait(seconds=2 * QUICK, every=QUICK)) == [
        "Waited 0.01 of 0.02 seconds.",
        "Waited 0.02 seconds.",
    ]


async def test_calling_it_runs_nothing() -> None:
    stream = tools.wait(seconds=-1)

    with pytest.raises(NativeToolError, match="`seconds` must be between 0 and 86400"):
        await read(stream)
    assert await read(stream) == []


async def test_awaiting_it_outside_of_an_event_loop_is_an_error() -> None:
    def drive() -> BaseException | None:
        try:
            tools.wait(seconds=1).__anext__().__await__().send(None)
        except RuntimeError as error:
            return error
        return None

    assert "event loop" in str(await asyncio.to_thread(drive))


async def test_arguments_are_coerced_and_checked() -> None:
    own = kit()

    (*_, coerced) = await read(own.call_tool_function(block("wait", seconds="0.01")))
    (missing,) = await read(own.call_tool_function(block("wait")))
    (foreign,) = await read(own.call_tool_function(block("wait", seconds=1, hours=2)))
    (small,) = await read(own.call_tool_function(block("wait", seconds=-1)))

    assert (coerced.text, coerced.code) == ("Waited 0.01 seconds.", None)
    assert [it.code for it in (missing, foreign, small)] == ["invalid_arguments"] * 3
    assert "seconds" in missing.text
    assert "hours" in foreign.text


async def test_presets_are_hidden_and_cannot_be_overridden() -> None:
    own = kit(preset_kwargs={"seconds": QUICK})

    (*_, response) = await read(own.call_tool_function(block("wait")))
    (refused,) = await read(own.call_tool_function(block("wait", seconds=LONG)))

    assert response.text == "Waited 0.01 seconds."
    assert refused.code == "invalid_arguments"


async def test_a_partial_presets_what_it_binds() -> None:
    own = toolkit(functools.partial(tools.wait, every=None))

    assert list(own.get_json_schemas()[0]["function"]["parameters"]["properties"]) == ["seconds"]
    assert await texts(own.call_tool_function(block("wait", seconds=QUICK))) == ["Waited 0.01 seconds."]


async def test_an_argument_that_json_does_not_have_is_an_error() -> None:
    own = kit(preset_kwargs={"every": object()})

    (response,) = await read(own.call_tool_function(block("wait", seconds=1)))

    assert response.code == "failed"
    assert "object is not JSON" in response.text


async def test_an_error_of_the_tool_is_a_response_or_an_exception() -> None:
    # What is passed unchecked reaches the tool, which refuses it itself.
    def passing(errors: Any) -> Toolkit:
        own = Toolkit(arguments="pass", errors=errors)
        own.register_tool_function(tools.wait)
        return own

    (response,) = await read(passing("respond").call_tool_function(block("wait", seconds=-1)))
    assert (response.code, response.text) == ("failed", "Error: `seconds` must be between 0 and 86400")

    with pytest.raises(NativeToolError, match="must be between"):
        await read(passing("raise").call_tool_function(block("wait", seconds=-1)))


async def test_arguments_that_the_type_refuses_are_invalid_arguments() -> None:
    own = Toolkit(arguments="pass", errors="raise")
    own.register_tool_function(tools.wait)

    (response,) = await read(own.call_tool_function(block("wait", seconds="soon")))

    assert response.code == "invalid_arguments"
    assert response.text.startswith("Error: Invalid arguments for tool 'wait': ")


async def test_a_rule_denies_it_before_it_runs() -> None:
    own = kit()
    own.policy = Policy([{"tool": "wait", "arguments": {"seconds": {"gt": 1}}, "decision": "deny"}], default="allow")

    (denied,) = await read(own.call_tool_function(block("wait", seconds=LONG)))
    (*_, allowed) = await read(own.call_tool_function(block("wait", seconds=QUICK)))

    assert (denied.code, allowed.code) == ("denied", None)


async def test_an_approver_is_asked_about_it() -> None:
    asked: list[Any] = []

    async def approver(request: Any) -> str:
        asked.append((request.tool, dict(request.arguments)))
        return "once"

    own = Toolkit(approver=approver)
    own.register_tool_function(tools.wait, permission="confirm")

    assert await texts(own.call_tool_function(block("wait", seconds=QUICK))) == ["Waited 0.01 seconds."]
    assert [tool for tool, _ in asked] == ["wait"]
    assert asked[0][1]["seconds"] == QUICK


def test_a_dry_run_reports_the_outcome_of_a_call() -> None:
    own = kit(permission="confirm")

    assert own.check(block("wait", seconds=1))["would"] == "pending"
    assert own.check(block("wait"))["code"] == "invalid_arguments"


async def test_a_group_that_is_off_is_respected() -> None:
    own = Toolkit()
    own.create_tool_group("time", "Time.", active=False)
    own.register_tool_function(tools.wait, "time")

    (response,) = await read(own.call_tool_function(block("wait", seconds=QUICK)))

    assert response.code == "inactive_group"


async def test_cancelling_the_task_ends_it(loop_factory: LoopFactory) -> None:
    got: list[ToolResponse] = []

    async def consume() -> None:
        async for response in kit().call_tool_function(block("wait", seconds=LONG, every=QUICK)):
            got.append(response)

    task = asyncio.create_task(consume())
    while not got:
        await asyncio.sleep(QUICK)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert got[-1].is_interrupted
    assert got[-1].text == NOTE  # progress is not part of the result
    assert got[0].text.startswith("Waited ")


@needs_counting
async def test_a_timeout_of_asyncio_ends_it() -> None:
    with pytest.raises(TimeoutError):
        async with timeout(QUICK * 10):
            await read(kit().call_tool_function(block("wait", seconds=LONG)))


@pytest.mark.parametrize("every", [None, QUICK * 5])
async def test_its_own_timeout_ends_it(every: float | None, loop_factory: LoopFactory) -> None:
    responses = await read(kit(timeout=QUICK * 30).call_tool_function(block("wait", seconds=LONG, every=every)))

    assert (responses[-1].code, responses[-1].is_interrupted) == ("timeout", False)
    assert responses[-1].text == "Error: The tool 'wait' did not finish within 0.3 seconds."


async def test_closing_the_stream_ends_it() -> None:
    stream = kit().call_tool_function(block("wait", seconds=LONG, every=QUICK))
    first = await stream.__anext__()
    await stream.aclose()

    assert first.text == "Waited 0.01 of 60 seconds."
    assert await read(stream) == []


async def test_closing_the_tools_own_iterator_ends_it() -> None:
    responses = tools.wait(seconds=LONG, every=QUICK)
    await responses.__anext__()
    await responses.aclose()

    assert await read(responses) == []


async def test_a_stream_that_is_dropped_leaves_nothing_behind() -> None:
    own = kit()
    before = threading.active_count()

    for _ in range(200):
        stream = own.call_tool_function(block("wait", seconds=LONG, every=QUICK))
        await stream.__anext__()
        del stream
    gc.collect()

    assert threading.active_count() == before
    assert await texts(own.call_tool_function(block("wait", seconds=QUICK))) == ["Waited 0.01 seconds."]


async def test_a_toolkit_with_native_tools_is_collected() -> None:
    own = kit()
    await read(own.call_tool_function(block("wait", seconds=0)))
    gone = weakref.ref(own)

    del own
    gc.collect()

    assert gone() is None


async def test_many_at_once_each_get_their_own_answer(loop_factory: LoopFactory) -> None:
    own = kit()
    waits = [index / 100_000 for index in range(1_000)]

    answers = await asyncio.gather(*(own.call("wait", seconds=seconds) for seconds in waits))

    assert [answer.text for answer in answers] == [f"Waited {_number(seconds)} seconds." for seconds in waits]


def _number(seconds: float) -> str:
    """A number as the tool writes it."""
    text = f"{seconds:.5f}".rstrip("0").rstrip(".")
    return text or "0"


async def test_a_middleware_is_around_it() -> None:
    own = kit()

    async def shout(kwargs: Any, next_handler: Any) -> Any:
        async for response in await next_handler(**kwargs):
            response.content[0]["text"] = response.content[0]["text"].upper()
            yield response

    own.register_middleware(shout)

    assert await texts(own.call_tool_function(block("wait", seconds=QUICK))) == ["WAITED 0.01 SECONDS."]


async def test_a_postprocess_function_sees_its_responses() -> None:
    def postprocess(_: Any, response: ToolResponse) -> ToolResponse:
        return ToolResponse([{"type": "text", "text": f"<{response.text}>"}])

    own = kit(postprocess_func=postprocess)

    assert await texts(own.call_tool_function(block("wait", seconds=QUICK))) == ["<Waited 0.01 seconds.>"]


async def test_it_is_traced_like_any_other(traces: Traces) -> None:
    await read(kit().call_tool_function(block("wait", seconds=QUICK)))

    span = traces.call()
    assert span.name == "execute_tool wait"
    assert span.attributes is not None
    assert span.attributes["gen_ai.tool.name"] == "wait"
    assert "error.type" not in span.attributes


async def test_a_background_call_goes_on_without_its_stream() -> None:
    own = kit(async_execution=True)

    (begun,) = await read(own.call_tool_function(block("wait", seconds=QUICK)))
    assert begun.metadata is not None
    answer = await own.wait_task(begun.metadata["task_id"])

    assert answer.text == "Waited 0.01 seconds."


def test_two_event_loops_use_the_same_runtime() -> None:
    own = kit()
    got: list[list[str]] = []

    def run() -> None:
        got.append(asyncio.run(texts(own.call_tool_function(block("wait", seconds=QUICK * 5, every=QUICK * 4)))))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert got == [["Waited 0.04 of 0.05 seconds.", "Waited 0.05 seconds."]] * 8


def test_a_loop_that_is_closed_during_a_call_does_no_harm() -> None:
    loop = asyncio.new_event_loop()
    stream = tools.wait(seconds=LONG, every=QUICK)
    loop.run_until_complete(stream.__anext__())
    loop.close()

    assert asyncio.run(texts(tools.wait(seconds=QUICK))) == ["Waited 0.01 seconds."]


def test_importing_toolcrib_starts_no_thread() -> None:
    result = python(
        """
        import os
        import toolcrib, toolcrib.tools
        print(len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1)
        """
    )

    assert (result.stdout.strip(), result.returncode) == ("1", 0), result.stderr
