"""Hostile names, inputs and results, each in a process of its own: the interpreter lives and answers."""

import pytest

from support.hostile import survives

CASES = {
    "deep input": """
        deep = []
        for _ in range(100_000): deep = [deep]
        print(len(run(answers("echo", {"value": deep}))), len(run(answers("count", {"value": deep}))))
    """,
    "deep dict": """
        deep = {}
        for _ in range(100_000): deep = {"k": deep}
        print(len(run(answers("echo", deep))), len(run(answers("echo", {"value": deep}))))
    """,
    "deep json text": """
        for text in ("[" * 1_000_000, '{"value":' * 1_000_000, '{"value":' + "[" * 500_000 + "]" * 500_000 + "}"):
            assert run(answers("echo", text))[0].code == "bad_call"
    """,
    "cyclic input": """
        cycle = {}; cycle["value"] = cycle
        items = []; items.append(items)
        for value in (cycle, {"value": items}, {"value": cycle}):
            run(answers("echo", value)); run(answers("count", value))
    """,
    "cyclic result": """
        class Node:
            def __init__(self): self.me = self
            def __repr__(self): return repr([self.me])
        kit.register_tool_function(lambda: Node(), func_name="node")
        assert len(run(answers("node"))) == 1
    """,
    "lone surrogates": """
        for name, value in (("\\ud800", None), ("echo", {"\\ud800": 1}), ("echo", {"value": "\\ud800"}),
                            ("echo", "\\ud800"), ("count", {"value": "\\udfff"})):
            run(answers(name, value))
        kit.register_tool_function(lambda: {"\\ud800": "\\udfff"}, func_name="odd")
        run(answers("odd"))
        try: kit.register_tool_function(lambda: 1, func_name="\\ud800")
        except Exception: pass
    """,
    "null characters": """
        for name, value in (("ec\\0ho", None), ("echo", {"val\\0ue": 1}), ("echo", {"value": "\\0"}), ("echo", "\\0")):
            run(answers(name, value))
        kit.register_tool_function(lambda: "\\0", func_name="null")
        assert run(answers("null"))[0].text == "\\0"
    """,
    "huge names and values": """
        big = "x" * 50_000_000
        assert run(answers(big))[0].code == "unknown_tool"
        run(answers("echo", {"value": big})); run(answers("echo", {big: 1})); run(answers("count", {"value": big}))
    """,
    "huge numbers": """
        for value in (10**5000, -10**5000, float("nan"), float("inf"), "9" * 5000, 1e308):
            run(answers("count", {"value": value})); run(answers("echo", {"value": value}))
        for digits in (5000, 1_000_000):
            run(answers("count", '{"value": ' + "9" * digits + "}"))
        run(answers("count", '{"value": 1e999999999}'))
    """,
    "mappings that raise": """
        class Bad(collections.abc.Mapping):
            def __init__(self, where): self.where = where
            def __getitem__(self, key):
                if self.where == "getitem": raise ZeroDivisionError
                return 1
            def __iter__(self):
                if self.where == "iter": raise ZeroDivisionError
                return iter(["value"])
            def __len__(self): return -1 if self.where == "len" else 1
            def keys(self):
                if self.where == "keys": raise ZeroDivisionError
                return [self] if self.where == "unhashable" else ["value"]
            __hash__ = None
        for where in ("getitem", "iter", "len", "keys", "unhashable", ""):
            run(answers("echo", Bad(where)))
            async def main():
                try: return [r async for r in kit.call_tool_function(Bad(where))]
                except Exception as error: return error
            run(main())
    """,
    "keys that are no text": """
        class Key(str):
            def __eq__(self, other): raise ZeroDivisionError
            def __hash__(self): return hash("value")
        for key in (1, None, (1, 2), b"value", Key("value"), Key("x")):
            run(answers("echo", {key: 1})); run(answers("count", {key: 1}))
            try: kit.call_tool_function({key: 1})
            except Exception: pass
    """,
    "an input that changes the call": """
        class Changing(collections.abc.Mapping):
            def __getitem__(self, key): raise KeyError(key)
            def __iter__(self): return iter(())
            def __len__(self): return 0
            def keys(self):
                block.clear(); gc.collect(); self.waste = ["q" * n for n in range(500)]
                return []
        kit.register_tool_function(lambda: "here", func_name="e" * 100)
        block = call("".join(["e"] * 100), Changing())
        async def main():
            return [r.text async for r in kit.call_tool_function(block)]
        assert run(main()) == ["here"]
    """,
    "an input that another thread changes": """
        shared = {"value": 1}
        stop = False
        def change():
            n = 0
            while not stop:
                n += 1
                shared[f"k{n % 50}"] = n
                shared.pop(f"k{(n + 25) % 50}", None)
        sys.setswitchinterval(1e-6)
        thread = threading.Thread(target=change); thread.start()
        try:
            for _ in range(3000): run_one = asyncio.run(answers("echo", shared))
        finally:
            stop = True; thread.join()
    """,
    "objects that lie about their class": """
        class Liar:
            def __init__(self, claim): self.claim = claim
            @property
            def __class__(self): return self.claim
        for claim in (dict, str, list, int, ToolResponse, BaseException, type(lambda: 1)):
            for value in (Liar(claim), {"value": Liar(claim)}):
                run(answers("echo", value)); run(answers("count", value))
            run(answers(Liar(claim)))
            kit.register_tool_function(lambda: Liar(claim), func_name="liar", namesake_strategy="override")
            run(answers("liar"))
            try: kit.register_tool_function(Liar(claim))
            except Exception: pass
            try: kit.call_tool_function(Liar(claim))
            except Exception: pass
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_no_hostile_value_harms_the_interpreter(case: str) -> None:
    survives(CASES[case])
