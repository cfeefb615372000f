"""Almost valid arguments: repaired, reported, and never run when they may be incomplete."""

import json
from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest

from support.streams import read, toolkit
from toolcrib import ToolCall, Toolkit, ToolResponse
from toolcrib.blocks import TextBlock
from toolcrib.policy import Policy, Rule


def search(query: str, max_results: int = 5, tags: list[str] | None = None) -> str:
    return json.dumps([query, max_results, tags])


def call(arguments: Any, name: str = "search") -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}


async def run(arguments: Any, kit: Toolkit | None = None) -> ToolResponse:
    [response] = await read((kit or toolkit(search)).call_tool_function(call(arguments)))
    return response


def repairs(response: ToolResponse) -> list[str]:
    return [repair["what"] for repair in (response.metadata or {}).get("repairs", [])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"query": "a", "max_results": 2,}', ["comma"]),
        ("{'query': 'a', 'max_results': 2}", ["quotes"]),
        ('{"query": "a", "max_results": 2, "tags": None}', ["literal"]),
        ('{"query": "a", /* few */ "max_results": 2 // or more\n}', ["comment"]),
        ('```json\n{"query": "a", "max_results": 2}\n```', ["fence"]),
        ('I search: {"query": "a", "max_results": 2}', ["prose"]),
        (json.dumps('{"query": "a", "max_results": 2}'), ["encoding"]),
        ('{"query": "a", "max_results": "2"}', ["coerced"]),
        ('{"query": "a", "maxResults": 2}', ["name"]),
        ("{'Query': 'a', 'MAX-RESULTS': '2',}", ["quotes", "comma", "name", "name", "coerced"]),
        ('{"query": "a", "max_results": 2, "tags": null}', []),
    ],
)
async def test_repairs_are_reported(text: str, expected: list[str]) -> None:
    response = await run(text)

    assert response.text == '["a", 2, null]'
    assert repairs(response) == expected
    assert response.metadata is not None or not expected


async def test_a_repair_names_its_path_and_kind() -> None:
    response = await run('{"query": "a", "maxResults": "2"}')

    assert response.metadata == {
        "repairs": [
            {"what": "name", "at": "max_results", "text": "the argument `maxResults` was read as `max_results`"},
            {"what": "coerced", "at": "max_results", "text": '"2" (a string) was read as 2 (an integer)'},
        ]
    }


@pytest.mark.parametrize("tags", ['["x", "y"]', "['x', 'y']", "['x', 'y',]", '```json\n["x", "y"]\n```'])
async def test_json_text_in_a_string_is_read_where_a_list_belongs(tags: str) -> None:
    response = await run({"query": "a", "tags": tags})

    assert json.loads(response.text) == ["a", 5, ["x", "y"]]
    assert {repair["at"] for repair in (response.metadata or {})["repairs"]} == {"tags"}


async def test_line_breaks_in_code_survive() -> None:
    code = 'def f():\n\treturn "x"\n'
    text = '{"query": "def f():\n\treturn \\"x\\"\n"}'

    response = await run(text)

    assert json.loads(response.text)[0] == code
    assert repairs(response) == ["newline"]


@pytest.mark.parametrize(
    "text",
    ['{"query": "a', '{"query": "a"', '{"query": "a", "max_results": ', '{"query": "a", "tags": ["x"}', "{'query': 'a"],
)
async def test_what_is_cut_off_never_runs(text: str) -> None:
    response = await run(text)

    assert response.code == "bad_call"
    assert "Send the whole call again" in response.text
    assert "'search' has not run" in response.text


@pytest.mark.parametrize(
    "arguments",
    [
        '{"query": "a", "query": "b"}',
        "{'query': 'a', 'query': 'a'}",
        json.dumps('{"query": "a", "query": "b"}'),
    ],
)
@pytest.mark.parametrize("options", [{}, {"repair": "off"}, {"repair": "explain"}, {"arguments": "pass"}])
async def test_a_key_that_comes_twice_never_runs(arguments: str, options: Any) -> None:
    kit = Toolkit(run_in="inline", **options)
    kit.register_tool_function(search)

    [response] = await read(kit.call_tool_function(call(arguments)))

    assert response.code == "bad_call"
    assert "same key twice" in response.text


async def test_a_key_that_comes_twice_in_nested_text_never_runs() -> None:
    def keep(settings: dict[str, int]) -> str:
        return json.dumps(settings)

    [response] = await read(toolkit(keep).call_tool_function(call({"settings": '{"a": 1, "a": 2}'}, "keep")))

    assert response.code == "invalid_arguments"


async def test_a_misspelt_name_is_reported_and_not_repaired() -> None:
    response = await run({"query": "a", "max_result": 2})

    assert response.code == "invalid_arguments"
    assert "did you mean max_results?" in response.text


async def test_of_two_names_for_one_parameter_none_is_chosen() -> None:
    response = await run({"query": "a", "maxResults": 2, "max_results": 3})

    assert response.code == "invalid_arguments"


@pytest.mark.parametrize("name", ["token", "Token", "TOKEN", "to-ken", "_token"])
async def test_no_name_is_repaired_into_a_preset(name: str) -> None:
    def pay(amount: int, token: str = "") -> str:
        return f"{amount} {token}"

    kit = Toolkit(run_in="inline")
    kit.register_tool_function(pay, preset_kwargs={"token": "secret"})

    [response] = await read(kit.call_tool_function(call({"amount": 1, name: "mine"}, "pay")))

    assert response.code == "invalid_arguments"
    assert "secret" not in response.text


@pytest.mark.parametrize("repair", ["explain", "off"])
@pytest.mark.parametrize("text", ["{'query': 'a'}", '```\n{"query": "a"}\n```', '{"Query": "a"}'])
async def test_nothing_that_needs_repair_runs_unless_repair_is_on(repair: Any, text: str) -> None:
    kit = Toolkit(run_in="inline", repair=repair)
    kit.register_tool_function(search)

    response = await run(text, kit)

    assert response.code in ("bad_call", "invalid_arguments")


async def test_explaining_says_what_to_send() -> None:
    kit = Toolkit(run_in="inline", repair="explain")
    kit.register_tool_function(search)

    response = await run("{'query': 'a', 'max_results': 2}", kit)
    named = await run({"query": "a", "maxResults": "2"}, kit)
    fine = await run({"query": "a", "max_results": 2}, kit)

    assert response.code == "invalid_arguments"
    assert response.text == (
        "Error: The arguments for tool 'search' need to be repaired, and the tool has not run:\n"
        "- other quotes were exchanged for those of JSON (3 times)\n"
        'If this is what you mean, send it: {"query":"a","max_results":2}'
    )
    assert named.text.splitlines()[1:] == [
        "- max_results: the argument `maxResults` was read as `max_results`",
        '- max_results: "2" (a string) was read as 2 (an integer)',
        'If this is what you mean, send it: {"query":"a","max_results":2}',
    ]
    assert repairs(response) == ["quotes"]
    assert repairs(named) == ["name", "coerced"]
    assert fine.ok
    assert fine.metadata is None


async def test_explaining_reports_every_repair_at_once() -> None:
    kit = Toolkit(run_in="inline", repair="explain")
    kit.register_tool_function(search)

    response = await run("{'query': 'a', 'maxResults': '2'}", kit)

    assert 'If this is what you mean, send it: {"query":"a","max_results":2}' in response.text
    assert repairs(response) == ["quotes", "name", "coerced"]


async def test_explaining_never_says_to_send_what_would_be_refused() -> None:
    kit = Toolkit(run_in="inline", repair="explain")
    kit.register_tool_function(search)

    response = await run("{'query': 'a', 'max_results': 'many'}", kit)

    assert "send it" not in response.text
    assert "max_results: expected an integer" in response.text
    assert repairs(response) == ["quotes"]


async def test_with_repair_off_values_are_still_coerced_and_reported() -> None:
    kit = Toolkit(run_in="inline", repair="off")
    kit.register_tool_function(search)

    response = await run({"query": "a", "max_results": "2"}, kit)

    assert response.ok
    assert repairs(response) == ["coerced"]


async def test_checking_repairs_text_but_not_names() -> None:
    kit = Toolkit(run_in="inline", arguments="check")
    kit.register_tool_function(search)

    assert (await run("{'query': 'a'}", kit)).ok
    assert (await run({"Query": "a"}, kit)).code == "invalid_arguments"


def test_another_word_is_the_developers_error() -> None:
    with pytest.raises(ValueError, match="repair must be 'on', 'explain' or 'off', not 'maybe'"):
        Toolkit(repair="maybe")  # type: ignore[arg-type]


async def test_the_first_response_of_a_stream_reports_repairs_and_the_tools_own_is_unchanged() -> None:
    given = ToolResponse([TextBlock(type="text", text="same")], metadata={"mine": 1})

    async def twice(n: int) -> AsyncIterator[ToolResponse]:
        for _ in range(n):
            yield given

    first, second, whole = await read(toolkit(twice).call_tool_function(call({"n": "2"}, "twice")))

    assert first.metadata == {
        "mine": 1,
        "repairs": [{"what": "coerced", "at": "n", "text": '"2" (a string) was read as 2 (an integer)'}],
    }
    assert second.metadata == whole.metadata == given.metadata == {"mine": 1}
    assert (first.id, first.content) == (second.id, second.content) == (given.id, given.content)
    assert (given.stream, given.is_last) == (False, True)


async def test_a_call_that_returns_its_last_response_reports_repairs_there() -> None:
    async def count(n: int) -> AsyncIterator[str]:
        for number in range(n):
            yield str(number)

    response = await toolkit(count).call("count", n="2")

    assert response.text == "01"
    assert repairs(response) == ["coerced"]


class Own(ToolResponse):
    """A response of a program's own class."""


async def test_a_response_of_another_class_stays_one() -> None:
    def own(n: int) -> Own:
        return Own([TextBlock(type="text", text=str(n))], metadata=[1])  # type: ignore[arg-type]

    [response] = await read(toolkit(own).call_tool_function(call({"n": "2"}, "own")))

    assert isinstance(response, Own)
    assert (response.metadata or {})["value"] == [1]
    assert repairs(response) == ["coerced"]


@pytest.mark.parametrize("run_in", ["inline", "thread", "process"])
async def test_it_does_not_matter_where_a_tool_runs(run_in: Literal["inline", "thread", "process"]) -> None:
    kit = Toolkit()
    kit.register_tool_function(search, run_in=run_in)

    response = await run("{'query': 'a'}", kit)

    assert (response.text, repairs(response)) == ('["a", 5, null]', ["quotes"])


async def test_a_background_tool_reports_repairs_at_once() -> None:
    async with Toolkit() as kit:
        kit.register_tool_function(search, async_execution=True)

        response = await run("{'query': 'a'}", kit)

        assert repairs(response) == ["quotes"]
        assert set(response.metadata or {}) == {"task_id", "repairs"}


async def test_a_middleware_sees_the_repaired_arguments() -> None:
    kit, seen = toolkit(search), list[Any]()

    async def look(kwargs: dict[str, Any], next_handler: Any) -> Any:
        async for response in await next_handler(**kwargs):
            seen.append(response.metadata)
            yield response

    kit.register_middleware(look)
    response = await run("{'query': 'a'}", kit)

    assert seen == [response.metadata]
    assert repairs(response) == ["quotes"]


@pytest.mark.parametrize(
    "hostile",
    [
        "{'a':" * 100_000,
        "[" * 100_000,
        '{"query": "' + "x" * 10_000_000,
        "{" + "'" * 500_000,
        '{"query": ' + "\\" * 500_000,
        "{" + "/*" * 250_000,
        "```" * 300_000,
        '{"query": "a"} ' * 50_000,
        "{\x00\x01'\ufeff\ud800': 1}",
    ],
    ids=len,
)
async def test_hostile_text_is_answered(hostile: str) -> None:
    response = await run(hostile)

    assert response.code in ("bad_call", "invalid_arguments")
    assert len(response.text) < 5000


def test_repairs_are_on_the_call_itself() -> None:
    call_read = ToolCall.read(call("{'query': 'a', 'query': 'b'"))

    assert call_read.is_truncated
    assert call_read.has_duplicate_keys
    assert [repair["what"] for repair in call_read.repairs] == ["quotes", "closed", "duplicate"]


async def test_a_read_only_tool_runs_with_incomplete_arguments() -> None:
    kit = Toolkit(run_in="inline")
    kit.register_tool_function(search, kind="read")

    cut_off = await run('{"query": "a', kit)
    twice = await run('{"query": "a", "query": "b"}', kit)

    assert (cut_off.text, repairs(cut_off)) == ('["a", 5, null]', ["quotes", "closed"])
    assert (twice.text, repairs(twice)) == ('["b", 5, null]', ["duplicate"])


@pytest.mark.parametrize("kind", [None, "edit", "delete", "move", "execute", "other"])
async def test_any_other_kind_of_tool_does_not(kind: Any) -> None:
    kit = Toolkit(run_in="inline")
    kit.register_tool_function(search, kind=kind)

    assert (await run('{"query": "a', kit)).code == "bad_call"


async def test_another_name_of_a_parameter_stands_for_it() -> None:
    kit = Toolkit(run_in="inline")
    kit.register_tool_function(search, aliases={"q": "query", "n": "max_results"})

    response = await run({"q": "a", "n": 2}, kit)

    assert response.text == '["a", 2, null]'
    assert repairs(response) == ["alias", "alias"]


async def test_rules_see_what_runs_and_the_response_reports_the_repairs() -> None:
    policy = Policy([Rule("deny", tool="search", args_pattern='"max_results": ?20')])
    kit = Toolkit(run_in="inline", policy=policy)
    kit.register_tool_function(search)

    allowed = await run("{'query': 'a', 'maxResults': '2'}", kit)
    denied = await run("{'query': 'a', 'maxResults': '20'}", kit)

    assert (allowed.text, repairs(allowed)) == ('["a", 2, null]', ["quotes", "name", "coerced"])
    assert denied.code == "denied"


def test_a_dry_run_reads_as_a_call_does() -> None:
    kit = toolkit(search)

    assert kit.check(call("{'query': 'a'}"))["would"] == "run"
    assert kit.check(call("{'query': 'a"))["code"] == "bad_call"
    assert kit.check(call("nonsense"))["code"] == "bad_call"
    assert kit.check(call({"max_result": 1}))["code"] == "invalid_arguments"


async def test_a_view_reads_as_its_toolkit_does() -> None:
    view = toolkit(search).view(names=["search"])

    [response] = await read(view.call_tool_function(call("{'query': 'a'}")))

    assert (response.text, repairs(response)) == ('["a", 5, null]', ["quotes"])


@pytest.mark.parametrize(
    "text",
    [
        '{"query": "a"} "max_results": 2}',
        '{"query": "a"} max_results: 2',
        '{"query": "a"}, 2',
        '{"query": "a"} ["b"]',
        '{"query": "a", "tags": ["b": "c"]}',
        '{"query": ""a"}',
        '{"query": "a "b", "max_results": 2}',
        '{"query": "a, "max_results": 2}',
    ],
)
async def test_a_call_never_runs_with_a_part_of_its_arguments(text: str) -> None:
    response = await run(text)

    assert response.code == "bad_call"


@pytest.mark.parametrize(
    ("text", "expected", "listed"),
    [
        ('{"query": "a"}, "max_results": 2}', ["a", 2, None], ["bracket"]),
        ('{"query": "say "hi" now", "max_results": 2}', ['say "hi" now', 2, None], ["quotes"]),
        ('{"query": "{a, b"} is a set", "max_results": 2}', ['{a, b"} is a set', 2, None], ["quotes"]),
        ('{"query": "a", "tags": ["b"}, "max_results": 2}', ["a", 2, ["b"]], ["bracket"]),
    ],
)
async def test_a_slip_with_one_reading_is_repaired(text: str, expected: list[Any], listed: list[str]) -> None:
    response = await run(text)

    assert json.loads(response.text) == expected
    assert repairs(response) == listed
