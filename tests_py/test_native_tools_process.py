"""Native tools and the life of a process: its exit, under load and with calls under way, and forks."""

import asyncio
import os
import sys
import textwrap

import pytest

from support.short_processes import wrong_results
from support.streams import python

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

SHORT = """
import asyncio, sys
sys.path[:] = {path!r}
from toolcrib import Toolkit, tools
kit = Toolkit()
kit.register_tool_function(tools.wait)
async def main():
    # A call that ends, and others that are under way when the process exits.
    for seconds in (60, 0.015, 0.02):
        other = kit.call_tool_function({{"name": "wait", "input": {{"seconds": seconds, "every": 0.01}}}})
        await other.__anext__()
        keep.append(other)
    print((await kit.call("wait", seconds={seconds})).text)
keep = []
asyncio.run(main())
"""


# Two hundred interpreters.
@pytest.mark.timeout(300)
def test_processes_that_call_one_and_exit_under_load_neither_crash_nor_hang() -> None:
    wrong = wrong_results(
        lambda index: SHORT.format(path=sys.path, seconds=index % 5 / 1000), lambda output: "Waited" in output
    )

    assert wrong == []


EXITS = {
    "return": "pass",
    "sys.exit": "import sys; sys.exit(0)",
    "thread": "threading.Thread(target=lambda: time.sleep(0.05)).start()",
    "atexit": "atexit.register(late)",
}


@pytest.mark.parametrize("how", EXITS)
def test_a_process_exits_with_calls_under_way(how: str) -> None:
    result = python(
        f"""
        import asyncio, atexit, threading, time
        from toolcrib import tools

        loop = asyncio.new_event_loop()
        streams = [tools.wait(seconds=60, every=0.01) for _ in range(20)]

        def late():
            try:
                loop.run_until_complete(tools.wait(seconds=0).__anext__())
            except RuntimeError as error:
                print(error)

        async def first(stream):
            await stream.__anext__()

        async def main():
            await asyncio.gather(*map(first, streams))

        loop.run_until_complete(main())
        {EXITS[how]}
        """
    )

    assert result.returncode == 0, result.stderr
    assert result.stderr == ""


def test_a_call_after_the_runtime_is_closed_is_an_error() -> None:
    result = python(
        """
        import atexit

        def late():
            import asyncio
            from toolcrib import tools
            async def main():
                return [response.text async for response in tools.wait(seconds=0)]
            try:
                print(asyncio.run(main()))
            except RuntimeError as error:
                print(error)

        # Registered before toolcrib's own, so that it runs after it.
        atexit.register(late)
        from toolcrib import tools
        """
    )

    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "cannot run a native tool: the interpreter is shutting down"


@needs_fork
def test_a_forked_child_has_a_runtime_of_its_own() -> None:
    result = python(
        """
        import asyncio, os, sys
        from toolcrib import tools

        async def one(seconds):
            return [response.text async for response in tools.wait(seconds=seconds)]

        loop = asyncio.new_event_loop()
        stream = tools.wait(seconds=60, every=0.01)
        loop.run_until_complete(stream.__anext__())
        print(asyncio.run(one(0.001)), flush=True)
        children = []
        for _ in range(20):
            child = os.fork()
            if child == 0:
                # What the parent has under way is refused, and dropped without harm.
                try:
                    asyncio.run(stream.__anext__())
                    os._exit(3)
                except (RuntimeError, ValueError):
                    pass
                del stream
                sys.exit(0 if asyncio.run(one(0.002)) == ["Waited 0.002 seconds."] else 4)
            children.append(child)
        print({os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children})
        print(loop.run_until_complete(stream.__anext__()).text.startswith("Waited"))
        """
    )

    assert result.returncode == 0, result.stderr
    assert result.stdout.split("\n")[:3] == ["['Waited 0.001 seconds.']", "{0}", "True"], result.stderr


async def test_an_interrupted_loop_can_go_on() -> None:
    result = await asyncio.to_thread(
        python,
        """
        import asyncio, os, signal, threading
        from toolcrib import tools

        async def one(seconds):
            return [response.text async for response in tools.wait(seconds=seconds)]

        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            asyncio.run(one(60))
        except KeyboardInterrupt:
            print("interrupted")
        print(asyncio.run(one(0.001)))
        """,
    )

    assert result.stdout.split("\n")[:2] == ["interrupted", "['Waited 0.001 seconds.']"], result.stderr


def test_the_script_of_the_short_processes_is_python() -> None:
    compile(textwrap.dedent(SHORT.format(path=[], seconds=0)), "short", "exec")
