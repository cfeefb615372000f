"""Hostile tools and consumers, each in a process of its own: the interpreter lives and answers."""

import pytest

from support.hostile import survives

CASES = {
    "recursion to the limit": """
        @kit.tool
        async def again(n: int) -> str:
            return (await kit.call("again", n=n + 1)).text
        @kit.tool
        def again_sync(n: int) -> str:
            try: return asyncio.get_running_loop() and kit.call("again_sync", n=n + 1).send(None)
            except StopIteration as stop: return stop.value.text
        def at_the_limit(n):
            try: return at_the_limit(n + 1)
            except RecursionError:
                stream = kit.call_tool_function(call("echo", {"value": 1}))
                try: return stream.__anext__().send(None)
                except StopIteration as stop: return stop.value
                except RecursionError: return None
        kit.register_tool_function(at_the_limit, preset_kwargs={"n": 0})
        for name, input in (("again", {"n": 0}), ("again_sync", {"n": 0}), ("at_the_limit", {})):
            run(answers(name, input))
    """,
    "a tool that closes its own stream": """
        errors = []
        async def main():
            def attempt(action):
                try: action()
                except Exception as error: errors.append(type(error).__name__)
            async def own():
                for action in (lambda: stream.close(), lambda: stream.aclose().__await__().send(None),
                               lambda: stream.throw(ValueError("x")), lambda: stream.send(None)):
                    attempt(action)
                yield "one"
                await asyncio.sleep(0)
                for action in (stream.close, lambda: stream.send(None), lambda: stream.__anext__().send(None)):
                    attempt(action)
                yield "two"
            kit.register_tool_function(own)
            stream = kit.call_tool_function(call("own", {}))
            return [r.text async for r in stream]
        assert run(main()) == ["one", "two", "onetwo"]
        assert len(errors) == 7, errors
    """,
    "a function that comes back to its own stream": """
        class Value:
            def __str__(self): return "|".join(attempts("str"))
        log = []
        def attempts(where):
            for action in (stream.close, lambda: stream.send(None), lambda: stream.throw(KeyError("k")),
                           lambda: next(stream)):
                try: action()
                except BaseException as error: log.append(type(error).__name__)
                else: log.append("worked")
            return [where]
        def own():
            attempts("tool")
            return Value()
        async def main():
            global stream
            kit.register_tool_function(own, postprocess_func=lambda *_: attempts("postprocess") and None)
            stream = kit.call_tool_function(call("own", {}))
            assert [r.text async for r in stream] == ['"str"']
            stream = kit.call("own")
            assert (await stream).text == '"str"'
        run(main())
        assert set(log) == {"ValueError"}, log
    """,
    "a postprocess function that closes its stream": """
        async def main():
            def nosy(block, response):
                for action in (stream.close, lambda: stream.throw(KeyError("k")), lambda: stream.send(None)):
                    try: action()
                    except BaseException: pass
                gc.collect()
            async def two():
                yield "one"
                yield "two"
            kit.register_tool_function(two, postprocess_func=nosy)
            stream = kit.call_tool_function(call("two", {}))
            try: return [r async for r in stream]
            except Exception as error: return error
        run(main())
    """,
    "a tool that reads its own stream": """
        async def main():
            async def own():
                try: await anext(stream)
                except RuntimeError as error: yield str(error)
                try: await anext(stream, None)
                except RuntimeError as error: yield str(error)
            kit.register_tool_function(own)
            stream = kit.call_tool_function(call("own", {}))
            return [r.text async for r in stream]
        assert all("already" in text for text in run(main()))
    """,
    "a tool that drops its toolkit": """
        async def main():
            box = [Toolkit(run_in="inline")]
            async def own():
                box[0].clear(); box.clear(); streams.clear(); gc.collect()
                yield "one"
                await asyncio.sleep(0)
                gc.collect()
                yield "two"
            box[0].register_tool_function(own)
            streams = [box[0].call_tool_function(call("own", {}))]
            return [r.text async for r in streams[0]]
        assert run(main()) == ["one", "two", "onetwo"]
    """,
    "a collection at every allocation": """
        gc.set_threshold(1)
        async def gen():
            for n in range(5):
                yield {"n": n}
                await asyncio.sleep(0)
        def sync():
            yield from "abc"
        kit.register_tool_function(gen)
        kit.register_tool_function(sync)
        kit.register_tool_function(sync, func_name="thread", run_in="thread")
        for name in ("echo", "count", "gen", "sync", "thread", "nobody"):
            for _ in range(20): run(answers(name))
    """,
    "a destructor that calls tools": """
        seen = []
        class Last:
            def __del__(self):
                try: kit.call("echo", value=1).send(None)
                except StopIteration as stop: seen.append(stop.value.text)
        async def main():
            async def gen(thing: object):
                yield "one"
                yield "two"
            kit.register_tool_function(gen)
            async for _ in kit.call_tool_function(call("gen", {"thing": Last()})): break
            gc.collect()
            await asyncio.sleep(0)
        run(main()); gc.collect()
        assert seen == ["1"], seen
    """,
    "awaitables that misbehave": """
        class Await:
            def __init__(self, way): self.way = way
            def __await__(self):
                if self.way == "raise": raise ZeroDivisionError
                if self.way == "none": return None
                if self.way == "int": return 7
                if self.way == "list": return iter([])
                return iter([1, 2])
        class Anext:
            def __init__(self, way): self.way = way
            def __aiter__(self): return self
            def __anext__(self): return {"none": None, "int": 7, "await": Await("none")}[self.way]
        things = [Await(w) for w in ("raise", "none", "int", "list", "ints")]
        things += [Anext(w) for w in ("none", "int", "await")]
        for thing in things:
            kit.register_tool_function(lambda: thing, func_name="odd", namesake_strategy="override")
            run(answers("odd"))
    """,
    "a task that drops the call it runs": """
        async def drop(text: str) -> str:
            # The task had the only reference to the stream, which is in the middle of its step.
            asyncio.current_task().__init__(asyncio.sleep(0))
            gc.collect()
            fill = [bytes(size) for size in range(100, 300) for _ in range(20)]
            return text
        kit.register_tool_function(drop)
        async def main():
            for _ in range(20):
                asyncio.Task(kit.call("drop", text="x"))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
        run(main())
    """,
    "steps in the wrong order": """
        async def forever():
            try:
                yield "one"
                await asyncio.sleep(30)
            finally: pass
        kit.register_tool_function(forever)
        async def main():
            for script in ("anext", "anext anext", "send send", "throw", "anext throw throw", "close anext",
                           "anext close close", "aclose aclose", "asend athrow", "athrow anext", "anext aclose anext",
                           "next next next", "throwargs"):
                stream = kit.call_tool_function(call("forever", {}))
                for word in script.split():
                    for _ in range(2):
                        try:
                            if word == "anext": stream.__anext__()
                            elif word == "send": stream.send(None)
                            elif word == "next": next(stream)
                            elif word == "throw": stream.throw(ValueError("x"))
                            elif word == "throwargs": stream.throw(); stream.throw(1, 2, 3, 4); stream.throw(int)
                            elif word == "close": stream.close()
                            elif word == "aclose": await stream.aclose()
                            elif word == "asend": stream.asend(1)
                            elif word == "athrow": stream.athrow(ValueError)
                        except (Exception, StopAsyncIteration): pass
                for arguments in ((), (1,), (int,), (None,), (ValueError, 1), (ValueError, ValueError("x"), 7),
                                  (1, 2, 3, 4)):
                    for method in (stream.throw, stream.athrow):
                        try: method(*arguments)
                        except Exception: pass
        run(main())
    """,
    "a stream used after its loop": """
        async def thread():
            stream = kit.call_tool_function(call("slow", {}))
            await anext(stream)
            return stream
        def slow():
            for n in range(1000): yield str(n)
        kit.register_tool_function(slow, run_in="thread")
        stream = asyncio.run(thread())
        async def again():
            try: return [r async for r in stream]
            except Exception as error: return [error]
        run(again())
        async def other():
            s = kit.call_tool_function(call("slow", {}))
            try: s.__anext__().send(None)
            except StopIteration: pass
        try: other().send(None)
        except BaseException as error: assert isinstance(error, (StopIteration, RuntimeError)), error
    """,
    "a stream passed between threads": """
        async def gen():
            for n in range(2000):
                yield str(n)
        kit.register_tool_function(gen)
        stream = kit.call_tool_function(call("gen", {}))
        sys.setswitchinterval(1e-6)
        def race():
            async def main():
                for _ in range(500):
                    try: await anext(stream)
                    except (RuntimeError, ValueError, StopAsyncIteration): pass
            asyncio.run(main())
        threads = [threading.Thread(target=race) for _ in range(4)]
        for t in threads: t.start()
        for t in threads: t.join(20)
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_no_hostile_code_harms_the_interpreter(case: str) -> None:
    survives(CASES[case])
