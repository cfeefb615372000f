"""Hostile middlewares, each in a process of its own: the interpreter lives and answers."""

import pytest

from support.hostile import survives

CASES = {
    "streams that give streams without end": """
        @kit.tool
        def again(): return kit.call_tool_function(call("again", {}))
        @kit.tool
        async def again_later(): return kit.call_tool_function(call("again_later", {}))
        for name in ("again", "again_later"):
            response = run(kit.call(name))
            assert response.code == "failed" and "too many tool calls" in response.text, response
    """,
    "thousands of middlewares": """
        async def passing(kwargs, next_handler):
            async for chunk in next_handler(**kwargs):
                yield chunk
        async def returning(kwargs, next_handler): return next_handler(**kwargs)
        def handing(kwargs, next_handler): return next_handler(**kwargs)
        for layer in (passing, returning, handing):
            kit._middlewares[:] = [layer] * 5000
            assert run(kit.call("echo", value=1)).code == "failed"
            kit._middlewares[:] = [layer] * 100
            assert run(kit.call("echo", value=1)).text == "1"
        kit._middlewares.clear()
    """,
    "a middleware that gives the stream it is asked by": """
        async def main():
            async def own(kwargs, next_handler): return stream
            kit._middlewares[:] = [own]
            stream = kit.call_tool_function(call("echo", {"value": 1}))
            got = [chunk async for chunk in stream]
            assert got[-1].code == "failed", got
            await stream.aclose()
        run(main())
        kit._middlewares.clear()
    """,
    "a middleware that closes its own stream": """
        errors = []
        async def main():
            def attempt(action):
                try: action()
                except Exception as error: errors.append(type(error).__name__)
            async def own(kwargs, next_handler):
                inner = next_handler(**kwargs)
                for action in (lambda: stream.close(), lambda: stream.aclose(), lambda: stream.send(None)):
                    attempt(action)
                async for chunk in inner:
                    attempt(lambda: stream.close())
                    yield chunk
                    inner.close()
            kit._middlewares[:] = [own, own]
            stream = kit.call_tool_function(call("echo", {"value": 1}))
            async for _ in stream: pass
            await stream.aclose()
        run(main())
        assert len(errors) >= 4, errors
        kit._middlewares.clear()
    """,
    "a handler that is kept and called later": """
        kept = []
        async def main():
            async def keep(kwargs, next_handler):
                kept.append((kwargs, next_handler))
                return "kept"
            kit._middlewares[:] = [keep]
            for _ in range(50):
                await kit.call("echo", value=1)
            for kwargs, handler in kept:
                assert [chunk.text async for chunk in handler(**kwargs)] == ["1"]
                handler(**kwargs)
                await anext(handler(**kwargs))
        run(main())
        del kept[:]
        kit._middlewares.clear()
        gc.collect()
    """,
    "closing that is asked for and not awaited": """
        async def main():
            async def gen():
                yield "0"
                yield "1"
            async def passing(kwargs, next_handler):
                async for chunk in next_handler(**kwargs): yield chunk
            kit.register_tool_function(gen)
            kit._middlewares[:] = [passing]
            for _ in range(50):
                stream = kit.call_tool_function(call("gen", {}))
                await anext(stream)
                closing = stream.aclose()
                try: await anext(stream)
                except RuntimeError: pass
                else: raise AssertionError("a stream that is closing gave a step")
                del stream, closing
            gc.collect()
        import warnings
        warnings.simplefilter("ignore")
        run(main())
        kit._middlewares.clear()
    """,
    "layers in many threads": """
        async def passing(kwargs, next_handler):
            async for chunk in next_handler(**kwargs): yield chunk
        sys.setswitchinterval(1e-6)
        def race():
            for _ in range(100):
                kit._middlewares.append(passing)
                assert kit.run("echo", value=1).text == "1"
                kit._middlewares.pop()
        threads = [threading.Thread(target=race) for _ in range(4)]
        for t in threads: t.start()
        for t in threads: t.join(40)
        kit._middlewares.clear()
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_no_hostile_middleware_harms_the_interpreter(case: str) -> None:
    survives(CASES[case])
