"""`Toolkit.schemas`: tools in the dialects of providers, and calls that come back in them."""

import copy
import gc
import json
import weakref
from typing import Any

import pytest
from pydantic import BaseModel

from support.middleware import passing
from support.streams import last
from toolcrib import DialectSchemas, DialectToolkit, Loss, Toolkit, errors
from toolcrib.policy import Policy, Rule

DIALECTS = ["openai", "openai_strict", "openai_responses", "openai_responses_strict", "anthropic", "gemini", "mcp"]


def seen_by(toolkit: Toolkit) -> list[dict[str, Any]]:
    """Register a tool that notes what it is called with."""
    seen: list[dict[str, Any]] = []

    def note(labels: dict[str, int], at: tuple[str, int], limit: int | None = 5, tag: str = "none") -> str:
        """Note everything.

        Args:
            labels: How many of each.
            at: A street and a number.
            limit: The most.
            tag: A word.
        """
        seen.append({"labels": labels, "at": at, "limit": limit, "tag": tag})
        return "noted"

    toolkit.register_tool_function(note, run_in="inline")
    return seen


class TestSchemas:
    def test_an_unknown_dialect_is_refused_with_those_there_are(self) -> None:
        with pytest.raises(errors.UnknownDialectError, match=r"`openai_strict`.*`gemini`") as caught:
            Toolkit().schemas("klingon")  # type: ignore[arg-type]

        assert isinstance(caught.value, ValueError)

    @pytest.mark.parametrize("dialect", DIALECTS)
    def test_it_is_a_plain_list_that_json_can_hold(self, dialect: Any) -> None:
        toolkit = Toolkit()
        seen_by(toolkit)

        schemas = toolkit.schemas(dialect)

        assert isinstance(schemas, DialectSchemas)
        assert schemas.dialect == dialect
        assert json.loads(json.dumps(schemas)) == list(schemas)
        assert len(schemas) == 1

    def test_each_provider_gets_its_own_envelope(self) -> None:
        toolkit = Toolkit()
        seen_by(toolkit)

        keys = {dialect: list(toolkit.schemas(dialect)[0]) for dialect in DIALECTS}  # type: ignore[arg-type]

        assert keys["openai"] == keys["openai_strict"] == ["type", "function"]
        assert keys["openai_responses"] == ["type", "name", "description", "parameters", "strict"]
        assert keys["anthropic"] == ["name", "description", "input_schema"]
        assert keys["gemini"] == ["name", "description", "parameters"]
        assert keys["mcp"] == ["name", "description", "inputSchema", "outputSchema"]
        assert toolkit.schemas("openai_strict")[0]["function"]["strict"] is True
        assert toolkit.schemas("openai_responses")[0]["strict"] is False

    def test_they_are_copies(self) -> None:
        toolkit = Toolkit()
        seen_by(toolkit)
        before = copy.deepcopy(list(toolkit.schemas("gemini")))

        toolkit.schemas("gemini")[0]["parameters"]["properties"].clear()

        assert toolkit.schemas("gemini") == before

    def test_they_follow_the_groups(self) -> None:
        toolkit = Toolkit()
        toolkit.create_tool_group("maths", "Numbers.")
        toolkit.register_tool_function(lambda a: a, func_name="add", group_name="maths")

        names = [[tool["name"] for tool in toolkit.schemas("anthropic")]]
        names.append([tool["name"] for tool in toolkit.schemas("anthropic", ["maths"])])
        toolkit.update_tool_groups(["maths"], active=True)
        names.append([tool["name"] for tool in toolkit.schemas("anthropic")])

        assert names == [[], ["add"], ["add"]]
        with pytest.raises(errors.UnknownGroupError):
            toolkit.schemas("anthropic", ["nothing"])

    async def test_the_meta_tool_is_listed_with_the_current_groups(self) -> None:
        toolkit = Toolkit()
        toolkit.register_tool_function(toolkit.reset_equipped_tools)

        none = toolkit.schemas("openai_strict")[0]["function"]["parameters"]["properties"]
        toolkit.create_tool_group("maths", "Numbers.")
        toolkit.create_tool_group("files", "Files.")
        both = toolkit.schemas("openai_strict")[0]["function"]["parameters"]["properties"]
        block = {"name": "reset_equipped_tools", "input": {"maths": True, "files": None}}
        response = await last(toolkit.call_tool_function(block, dialect="openai_strict"))

        assert list(none) == []
        assert list(both) == ["maths", "files"]
        assert response.code is None
        assert [group.active for group in toolkit.groups.values()] == [True, False]

    def test_an_extended_model_is_part_of_them(self) -> None:
        class Answer(BaseModel):
            scores: dict[str, float]

        toolkit = Toolkit()
        toolkit.register_tool_function(lambda text, **kwargs: text, func_name="answer")
        before = toolkit.schemas("openai_strict")[0]["function"]["parameters"]["properties"]

        toolkit.set_extended_model("answer", Answer)
        after = toolkit.schemas("openai_strict")[0]["function"]["parameters"]["properties"]

        assert "scores" not in before
        assert after["scores"]["items"]["properties"].keys() == {"key", "value"}

    def test_what_is_lost_is_reported(self) -> None:
        toolkit = Toolkit()
        schema = {
            "type": "function",
            "function": {
                "name": "open",
                "parameters": {"type": "object", "properties": {"url": {"type": "string", "format": "uri"}}},
            },
        }
        toolkit.register_tool_function(lambda url: url, func_name="open", json_schema=schema)

        report = toolkit.schemas("openai_strict").report

        assert report == [Loss("open", "url", "format", "in the description: Format: uri.")]
        assert str(report[0]) == "open: url: format (in the description: Format: uri.)"
        assert toolkit.schemas("openai").report == []

    def test_a_tool_that_is_gone_takes_what_was_kept_with_it(self) -> None:
        class Owner:
            def work(self, labels: dict[str, int]) -> None:
                pass

        toolkit = Toolkit()
        owner = Owner()
        gone = weakref.ref(owner)
        toolkit.register_tool_function(owner.work)
        schemas = toolkit.schemas("gemini")

        toolkit.remove_tool_function("work")
        del owner
        gc.collect()

        assert gone() is None
        assert schemas.decode("work", {"labels": []}) == {"labels": {}}


class TestCalls:
    @pytest.mark.parametrize("dialect", DIALECTS)
    async def test_the_tool_gets_the_original_shape(self, dialect: Any) -> None:
        toolkit = Toolkit()
        seen = seen_by(toolkit)
        arguments = {"labels": {"a": 1}, "at": ["Road", 7], "limit": None}
        sent = toolkit.schemas(dialect).encode("note", arguments)

        response = await last(toolkit.call_tool_function({"name": "note", "input": sent}, dialect=dialect))

        assert response.text == "noted"
        assert seen == [{**arguments, "at": ("Road", 7), "tag": "none"}]

    async def test_a_null_for_a_missing_value_is_distinguished_from_a_real_null(self) -> None:
        toolkit = Toolkit()
        seen = seen_by(toolkit)
        given: dict[str, Any] = {"labels": [], "at": {"item_1": "Road", "item_2": 7}, "tag": None}

        for limit in (None, {"value": None}, {"value": 3}):
            block = {"name": "note", "input": {**given, "limit": limit}}
            await last(toolkit.call_tool_function(block, dialect="openai_strict"))

        assert [call["limit"] for call in seen] == [5, None, 3]
        assert [call["tag"] for call in seen] == ["none"] * 3

    async def test_arguments_may_be_json_text(self) -> None:
        toolkit = Toolkit()
        seen = seen_by(toolkit)
        text = json.dumps({"labels": [{"key": "a", "value": 1}], "at": {"item_1": "Road", "item_2": 7}})

        await last(toolkit.call_tool_function({"name": "note", "input": text}, dialect="gemini"))

        assert seen[0]["labels"] == {"a": 1}

    @pytest.mark.parametrize(
        ("dialect", "wrap"),
        [
            (
                "openai_strict",
                lambda it: {"id": "1", "type": "function", "function": {"name": "note", "arguments": it}},
            ),
            ("openai_responses_strict", lambda it: {"type": "function_call", "name": "note", "arguments": it}),
            ("gemini", lambda it: {"functionCall": {"name": "note", "args": json.loads(it)}}),
        ],
    )
    async def test_a_call_in_the_format_of_its_provider_is_read_too(self, dialect: Any, wrap: Any) -> None:
        toolkit = Toolkit()
        seen = seen_by(toolkit)
        sent = toolkit.schemas(dialect).encode("note", {"labels": {"a": 1}, "at": ["Road", 7]})

        response = await last(toolkit.call_tool_function(wrap(json.dumps(sent)), dialect=dialect))

        assert response.text == "noted"
        assert seen == [{"labels": {"a": 1}, "at": ("Road", 7), "limit": 5, "tag": "none"}]

    @pytest.mark.filterwarnings("ignore:model providers refuse")
    async def test_a_view_lists_and_accepts_only_its_tools(self) -> None:
        toolkit = Toolkit()
        seen = seen_by(toolkit)
        toolkit.register_tool_function(lambda numbers: numbers, func_name="math.add")
        view = toolkit.view(names=["note"])
        hidden = toolkit.schemas("gemini")[1]["name"]

        schemas = view.schemas("gemini")
        sent = schemas.encode("note", {"labels": {"a": 1}, "at": ["Road", 7]})
        shown = await last(view.call_tool_function({"name": "note", "input": sent}, dialect="gemini"))
        other = await last(view.call_tool_function({"name": hidden, "input": {}}, dialect="gemini"))

        assert [tool["name"] for tool in schemas] == ["note"]
        assert shown.text == "noted"
        assert seen[0]["labels"] == {"a": 1}
        assert other.code == "tool_not_available"
        assert "math.add" not in other.text

    async def test_what_cannot_be_brought_back_is_answered_and_nothing_runs(self) -> None:
        toolkit = Toolkit()
        seen = seen_by(toolkit)
        block = {"name": "note", "input": {"labels": [{"name": "a"}], "at": ["Road", 7]}}

        response = await last(toolkit.call_tool_function(block, dialect="openai_strict"))

        assert response.code == "invalid_arguments"
        assert "labels[0]: expected an object with `key`, a string, and `value`" in response.text
        assert seen == []

    async def test_the_original_schema_still_holds(self) -> None:
        toolkit = Toolkit()
        seen = seen_by(toolkit)
        block = {"name": "note", "input": {"labels": [{"key": "a", "value": "many"}], "at": ["Road", 7]}}

        response = await last(toolkit.call_tool_function(block, dialect="openai_strict"))

        assert response.code == "invalid_arguments"
        assert "labels.a" in response.text
        assert seen == []

    async def test_a_tool_that_may_not_be_called_answers_as_ever(self) -> None:
        toolkit = Toolkit()
        toolkit.create_tool_group("maths", "Numbers.")
        toolkit.register_tool_function(lambda numbers: numbers, func_name="add", group_name="maths")

        unknown = await last(toolkit.call_tool_function({"name": "sub", "input": {}}, dialect="gemini"))
        inactive = await last(toolkit.call_tool_function({"name": "add", "input": {}}, dialect="gemini"))

        assert unknown.code == "unknown_tool"
        assert inactive.code == "inactive_group"

    @pytest.mark.filterwarnings("ignore:model providers refuse")
    @pytest.mark.parametrize("dialect", ["openai", "openai_strict", "anthropic", "gemini"])
    async def test_a_name_that_the_provider_refuses_finds_its_tool(self, dialect: Any) -> None:
        toolkit = Toolkit()
        for name in ("weather.get", "weather get"):
            toolkit.register_tool_function(lambda it=name: it, func_name=name, run_in="inline")
        schemas = toolkit.schemas(dialect)
        shown = [tool.get("function", tool)["name"] for tool in schemas]

        texts = [
            (await last(toolkit.call_tool_function({"name": it, "input": {}}, dialect=dialect))).text for it in shown
        ]

        assert [schemas.tool_name(name) for name in shown] == texts == ["weather.get", "weather get"]
        assert all(name.startswith("weather_get_") for name in shown)

    async def test_middlewares_see_the_call_in_the_toolkits_own_words(self) -> None:
        toolkit = Toolkit()
        seen_by(toolkit)
        calls: list[Any] = []

        async def watch(kwargs: dict[str, Any], next_handler: Any) -> Any:
            calls.append(kwargs["tool_call"])
            async for response in await next_handler(**kwargs):
                yield response

        toolkit.register_middleware(watch)
        sent: dict[str, Any] = {"labels": [], "at": {"item_1": "Road", "item_2": 7}}
        block = {"id": "1", "name": "note", "input": sent}

        response = await last(toolkit.call_tool_function(block, dialect="gemini"))

        assert response.text == "noted"
        assert calls == [{"id": "1", "name": "note", "input": {"labels": {}, "at": ["Road", 7]}}]
        assert sent["labels"] == []

    async def test_nothing_is_looked_at_before_the_first_step(self) -> None:
        toolkit = Toolkit()
        block = {"name": "note", "input": {"labels": [], "at": {"item_1": "Road", "item_2": 7}}}

        stream = toolkit.call_tool_function(block, dialect="gemini")
        seen = seen_by(toolkit)
        await last(stream)

        assert seen[0]["at"] == ("Road", 7)

    def test_the_keyword_is_checked_at_once(self) -> None:
        toolkit = Toolkit()

        with pytest.raises(errors.UnknownDialectError):
            toolkit.call_tool_function({"name": "a"}, dialect="klingon")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="keyword dialect"):
            toolkit.call_tool_function({"name": "a"}, dialekt="gemini")  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            toolkit.call_tool_function({"name": "a"}, dialect=3)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            toolkit.call_tool_function(dialect="gemini")  # type: ignore[call-arg]

    async def test_no_dialect_is_the_toolkits_own(self) -> None:
        toolkit = Toolkit()
        seen = seen_by(toolkit)

        call = {"name": "note", "input": {"labels": {"a": 1}, "at": ["Road", 7]}}
        await last(toolkit.call_tool_function(tool_call=call, dialect=None))

        assert seen[0]["labels"] == {"a": 1}


class TestDecode:
    def test_arguments_are_decoded_without_a_call(self) -> None:
        toolkit = Toolkit()
        seen_by(toolkit)
        schemas = toolkit.schemas("openai_strict")
        sent = {"labels": [{"key": "a", "value": 1}], "at": {"item_1": "Road", "item_2": 7}, "limit": None, "tag": None}

        assert schemas.decode("note", sent) == {"labels": {"a": 1}, "at": ["Road", 7]}
        assert schemas.decode("note", json.dumps(sent)) == {"labels": {"a": 1}, "at": ["Road", 7]}

    def test_what_is_wrong_is_said(self) -> None:
        toolkit = Toolkit()
        seen_by(toolkit)
        schemas = toolkit.schemas("openai_strict")

        with pytest.raises(errors.UnreadableArgumentsError, match=r"labels\[0\]"):
            schemas.decode("note", {"labels": [1]})
        with pytest.raises(errors.UnreadableArgumentsError, match="not valid JSON"):
            schemas.decode("note", "{")
        with pytest.raises(errors.UnknownToolError, match="`other`"):
            schemas.decode("other", {})


class TestDialectToolkit:
    async def test_it_lists_and_accepts_one_dialect(self) -> None:
        toolkit = Toolkit()
        seen = seen_by(toolkit)
        strict = DialectToolkit(toolkit, "openai_strict")

        schemas = strict.get_json_schemas()
        sent = schemas.encode("note", {"labels": {"a": 1}, "at": ["Road", 7]})
        await last(strict.call_tool_function({"name": "note", "input": sent}))

        assert schemas == toolkit.schemas("openai_strict")
        assert seen[0]["labels"] == {"a": 1}
        assert strict.dialect == "openai_strict"
        assert strict.toolkit is toolkit

    async def test_all_else_is_the_toolkit(self) -> None:
        toolkit = Toolkit()
        seen = seen_by(toolkit)

        strict = DialectToolkit(toolkit, "openai_strict")
        await strict.call("note", labels={"a": 1}, at=["Road", 7])

        assert seen[0]["labels"] == {"a": 1}
        assert list(strict.tools) == ["note"]
        with pytest.raises(AttributeError):
            strict.nothing  # noqa: B018

    def test_an_unknown_dialect_is_refused(self) -> None:
        with pytest.raises(errors.UnknownDialectError):
            DialectToolkit(Toolkit(), "klingon")  # type: ignore[arg-type]


DEEP: Any = 1
for _ in range(200):
    DEEP = [DEEP]


class TestHostileArguments:
    """Anything a model sends is answered and never raises in the calling program."""

    @pytest.mark.parametrize("dialect", ["openai_strict", "openai_responses_strict", "gemini"])
    @pytest.mark.parametrize(
        ("sent", "path"),
        [
            ({"labels": {}, "at": ["\ud800", 1]}, "at"),
            ({"labels": [{"key": "\udc00", "value": 1}], "at": ["Road", 1]}, "labels"),
            ({"labels": [{"key": "a", "value": float("nan")}], "at": ["Road", 1]}, "labels"),
            ({"labels": [{"key": "a", "value": float("inf")}], "at": ["Road", 1]}, "labels"),
            ({"labels": {"a": float("-inf")}, "at": ["Road", 1]}, "labels"),
            ({"labels": DEEP, "at": ["Road", 1]}, "labels"),
            ({"labels": {}, "at": ["Road", DEEP]}, "at"),
            ({"labels": {"a": 10**5000}, "at": ["Road", 1]}, "labels"),
            ({"labels": {"a": object()}, "at": ["Road", 1]}, "labels"),
            ({"labels": {7: 1}, "at": ["Road", 1]}, "labels"),
        ],
    )
    async def test_what_json_cannot_hold_is_answered_with_a_path(self, dialect: Any, sent: Any, path: str) -> None:
        toolkit = Toolkit()
        seen = seen_by(toolkit)

        response = await last(toolkit.call_tool_function({"name": "note", "input": sent}, dialect=dialect))

        assert response.code == "invalid_arguments"
        assert f"- {path}" in response.text
        assert seen == []

    @pytest.mark.parametrize("dialect", [None, *DIALECTS])
    @pytest.mark.parametrize("label", [float("nan"), float("inf"), DEEP, object()])
    async def test_a_dialect_refuses_what_is_refused_without_one(self, dialect: Any, label: Any) -> None:
        toolkit = Toolkit()
        seen = seen_by(toolkit)
        sent = {"labels": {"a": label}, "at": ["Road", 1]}

        response = await last(toolkit.call_tool_function({"name": "note", "input": sent}, dialect=dialect))

        assert response.code == "invalid_arguments"
        assert seen == []

    @pytest.mark.parametrize("dialect", ["openai_strict", "gemini"])
    @pytest.mark.parametrize("text", ["9" * 5000, "[" * 5000 + "]" * 5000, "[1e999]", '["\\ud800"]'])
    async def test_json_in_a_text_is_answered_as_well(self, dialect: Any, text: str) -> None:
        toolkit = Toolkit()

        @toolkit.tool(run_in="inline")
        def keep(data: Any, more: dict[str, Any]) -> str:
            return "kept"

        response = await last(
            toolkit.call_tool_function({"name": "keep", "input": {"data": text, "more": text}}, dialect=dialect)
        )

        assert response.code == "invalid_arguments"
        with pytest.raises(errors.UnreadableArgumentsError):
            toolkit.schemas(dialect).decode("keep", {"data": "\ud800", "more": "{}"})

    @pytest.mark.parametrize("dialect", ["openai_strict", "gemini"])
    @pytest.mark.parametrize(
        "headers", [[["Authorization", "hunter2"]], ["hunter2"], [{"key": "hunter2", "value": float("nan")}], "hunter2"]
    )
    async def test_a_refusal_does_not_show_a_secret(self, dialect: Any, headers: Any) -> None:
        toolkit = Toolkit()

        @toolkit.tool(secrets=["headers", "arguments"], run_in="inline")
        def login(user: str, headers: dict[str, str], arguments: dict[str, str] | None = None) -> str:
            return "in"

        sent = {"user": "a", "headers": headers, "arguments": None}
        response = await last(toolkit.call_tool_function({"name": "login", "input": sent}, dialect=dialect))

        assert response.code == "invalid_arguments"
        assert "hunter2" not in response.text
        assert "headers" in response.text

    @pytest.mark.parametrize("dialect", ["openai_strict", "gemini"])
    async def test_a_refusal_shows_values_that_are_not_secret(self, dialect: Any) -> None:
        toolkit = Toolkit()

        @toolkit.tool(secrets=["password"], run_in="inline")
        def login(labels: dict[str, int], password: str = "") -> str:
            return "in"

        sent = {"labels": ["plain"], "password": "hunter2"}
        response = await last(toolkit.call_tool_function({"name": "login", "input": sent}, dialect=dialect))

        assert "plain" in response.text
        assert "hunter2" not in response.text


@pytest.mark.filterwarnings("ignore:model providers refuse")
@pytest.mark.parametrize("has_middleware", [False, True])
@pytest.mark.parametrize("rules", [[], [Rule("deny", tool="mail.send")]])
async def test_a_tool_of_another_name_is_found_also_if_its_arguments_cannot_be_read(
    has_middleware: bool, rules: list[Rule]
) -> None:
    kit = Toolkit(run_in="inline", policy=Policy(rules))
    kit.register_tool_function(lambda to="ann": to, func_name="mail.send")
    if has_middleware:
        kit.register_middleware(passing)
    name = kit.schemas("openai")[0]["function"]["name"]
    block = {"name": name, "input": "not JSON"}
    call = {"id": "call-1", "type": "function", "function": {"name": name, "arguments": "not JSON"}}

    responses = [await last(kit.call_tool_function(it, dialect="openai")) for it in (block, call)]

    assert name != "mail.send"
    assert [response.code for response in responses] == ["denied" if rules else "bad_call"] * 2
