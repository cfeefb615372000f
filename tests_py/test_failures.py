"""Exceptions of tools: the record in the log, the exception on the response, and the text for the model."""

import asyncio
import copy
import dataclasses
import datetime
import decimal
import enum
import gc
import logging
import pathlib
import pickle
import sys
import uuid
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pydantic
import pytest

from support import process_tools
from support.streams import block, python, read
from toolcrib import FailedCall, Toolkit, ToolResponse, errors, tools
from toolcrib.compat.agentscope import Toolkit as AgentScopeToolkit

Log = pytest.LogCaptureFixture


def function() -> str:
    raise KeyError("k")


async def coroutine() -> str:
    raise KeyError("k")


def generator() -> Iterator[str]:
    yield "first"
    raise KeyError("k")


async def async_generator() -> AsyncIterator[str]:
    yield "first"
    raise KeyError("k")


TOOLS = [function, coroutine, generator, async_generator]


async def last(toolkit: Toolkit, name: str, **arguments: Any) -> ToolResponse:
    return (await read(toolkit.call_tool_function(block(name, **arguments))))[-1]


@pytest.mark.parametrize("run_in", ["thread", "inline"])
@pytest.mark.parametrize("tool", TOOLS)
async def test_the_model_reads_the_class_and_the_message(tool: Callable[..., Any], run_in: Any) -> None:
    toolkit = Toolkit(run_in=run_in, tools=[tool])

    response = await last(toolkit, tool.__name__)

    assert (response.text, response.code) == ("KeyError: 'k'", "failed")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("bad city"), "ValueError: bad city"),
        (ValueError(), "ValueError"),
        (TimeoutError(), "TimeoutError"),
        (AssertionError(), "AssertionError"),
        (StopAsyncIteration("x"), "StopAsyncIteration: x"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
async def test_an_exception_without_a_message_has_its_class(error: BaseException, text: str) -> None:
    toolkit = Toolkit()

    @toolkit.tool
    def fail() -> None:
        raise error

    assert (await toolkit.call("fail")).text == text


async def test_agentscopes_text_is_kept_to_the_letter() -> None:
    toolkit = AgentScopeToolkit()
    toolkit.register_tool_function(coroutine, preset_kwargs={})

    assert (await toolkit.call("coroutine")).text == "Error: 'k'"


@pytest.mark.parametrize(("name", "is_shown"), [("account", False), ("amount", True)])
async def test_a_hint_of_python_at_a_preset_is_not_shown(name: str, is_shown: bool) -> None:
    async def spend(amount: int, account: str) -> None:
        raise TypeError(f"spend() got an unexpected keyword argument 'x'. Did you mean '{name}'?")

    toolkit = Toolkit()
    toolkit.register_tool_function(spend, preset_kwargs={"account": "hidden"})

    response = await toolkit.call("spend", amount=1)

    assert "unexpected keyword argument 'x'" in response.text
    assert (name in response.text) is is_shown


async def test_a_native_tool_has_the_text_of_its_error(caplog: Log) -> None:
    toolkit = Toolkit(tools=[tools.wait])

    response = await toolkit.call("wait", seconds=20000, every=0.5)

    assert response.text.startswith("Error: `every` must be greater than 0")
    assert isinstance(response.exception, errors.NativeToolError)
    assert len(caplog.records) == 1


# The log


@pytest.mark.parametrize("run_in", ["thread", "inline"])
@pytest.mark.parametrize("tool", TOOLS)
async def test_every_exception_is_logged_once_with_its_traceback(
    tool: Callable[..., Any], run_in: Any, caplog: Log
) -> None:
    toolkit = Toolkit(run_in=run_in, tools=[tool])

    await read(toolkit.call_tool_function({**block(tool.__name__), "id": "c1"}))

    (record,) = caplog.records
    assert (record.name, record.levelno) == ("toolcrib", logging.WARNING)
    assert record.getMessage() == f"tool '{tool.__name__}' raised KeyError (call c1)"
    assert vars(record)["tool"] == tool.__name__
    assert vars(record)["call_id"] == "c1"
    assert f"in {tool.__name__}" in caplog.text
    assert 'raise KeyError("k")' in caplog.text


async def test_an_exception_of_a_process_is_logged_with_the_childs_traceback(caplog: Log) -> None:
    toolkit = Toolkit()
    toolkit.register_tool_function(process_tools.fail, run_in="process")

    response = await toolkit.call("fail")

    assert response.text == "LookupError: not there"
    assert len(caplog.records) == 1
    assert "in fail" in caplog.text


@pytest.mark.parametrize("tool", TOOLS)
async def test_an_exception_that_is_raised_is_logged_once(tool: Callable[..., Any], caplog: Log) -> None:
    toolkit = Toolkit(errors="raise", tools=[tool])

    async def pass_on(kwargs: Any, next_handler: Any) -> AsyncIterator[ToolResponse]:
        async for response in next_handler(**kwargs):
            yield response

    toolkit.register_middleware(pass_on)
    toolkit.register_middleware(pass_on)

    with pytest.raises(KeyError):
        await read(toolkit.call_tool_function(block(tool.__name__)))

    assert [record.getMessage().split(" (")[0] for record in caplog.records] == [
        f"tool '{tool.__name__}' raised KeyError"
    ]


async def test_the_exception_of_a_middleware_is_logged_as_such(caplog: Log) -> None:
    toolkit = Toolkit(tools=[len])

    async def broken(kwargs: Any, next_handler: Any) -> AsyncIterator[ToolResponse]:
        raise LookupError("nowhere")
        yield

    toolkit.register_middleware(broken)

    response = await last(toolkit, "len", obj="x")

    assert response.text == "LookupError: nowhere"
    assert caplog.records[0].getMessage().startswith("a middleware of tool 'len' raised LookupError")


async def test_the_exception_of_a_postprocess_function_is_logged(caplog: Log) -> None:
    def broken(block: Any, response: ToolResponse) -> None:
        raise LookupError("nowhere")

    toolkit = Toolkit()
    toolkit.register_tool_function(len, postprocess_func=broken)

    response = await last(toolkit, "len", obj="x")

    assert response.text == "LookupError: nowhere"
    assert len(caplog.records) == 1


async def test_a_logger_that_is_off_gets_no_record(caplog: Log) -> None:
    toolkit = Toolkit(tools=[coroutine])

    with caplog.at_level(logging.ERROR, "toolcrib"):
        await toolkit.call("coroutine")

    assert caplog.records == []


async def test_a_broken_log_does_not_stop_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(record: logging.LogRecord) -> bool:
        raise OSError("full")

    toolkit = Toolkit(tools=[coroutine])
    reported: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", reported.append)
    logger = logging.getLogger("toolcrib")
    logger.addFilter(broken)
    try:
        response = await toolkit.call("coroutine")
    finally:
        logger.removeFilter(broken)

    assert response.text == "KeyError: 'k'"
    assert [str(report.exc_value) for report in reported] == ["full"]


async def test_cancelling_is_not_logged(caplog: Log) -> None:
    toolkit = Toolkit()

    @toolkit.tool
    async def sleep() -> None:
        await asyncio.sleep(60)

    task = asyncio.create_task(toolkit.call("sleep"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert caplog.records == []


# The response


async def test_the_response_keeps_the_exception() -> None:
    toolkit = Toolkit(tools=[coroutine, len])

    failed, good = await toolkit.call("coroutine"), await toolkit.call("len", obj="abc")

    assert isinstance(failed.exception, KeyError)
    assert failed.exception.__traceback__ is not None
    assert good.exception is None


async def test_the_exception_is_neither_compared_nor_pickled_but_copied() -> None:
    response = await Toolkit(tools=[coroutine]).call("coroutine")

    pickled, copied = pickle.loads(pickle.dumps(response)), copy.copy(response)

    assert pickled == response == copied
    assert pickled.exception is None
    assert copied.exception is response.exception
    assert copied.code == response.code


class Big:
    pass


@pytest.fixture
def unlogged(caplog: Log) -> Iterator[None]:
    """A log that keeps no exceptions."""
    with caplog.at_level(logging.ERROR, "toolcrib"):
        yield


@pytest.mark.usefixtures("unlogged")
async def test_the_exception_of_a_response_is_collected_with_it() -> None:
    toolkit, alive = Toolkit(run_in="inline"), []

    @toolkit.tool
    def fail() -> None:
        big = Big()
        alive.append(weakref.ref(big))
        raise KeyError("k")

    response = await toolkit.call("fail")
    assert response.exception is not None
    response.exception.response = response  # type: ignore[attr-defined]
    del response
    gc.collect()

    assert alive[0]() is None


@pytest.mark.usefixtures("unlogged")
async def test_setting_the_exception_to_none_releases_its_frames() -> None:
    toolkit, alive = Toolkit(run_in="inline"), []

    @toolkit.tool
    def fail() -> None:
        big = Big()
        alive.append(weakref.ref(big))
        raise KeyError("k")

    response = await toolkit.call("fail")
    held = alive[0]() is not None
    response.exception = None
    gc.collect()

    assert held
    assert alive[0]() is None


# The formatter


async def test_a_formatter_writes_the_text() -> None:
    seen: list[tuple[BaseException, FailedCall]] = []

    def describe(error: BaseException, failed: FailedCall) -> str:
        seen.append((error, failed))
        return f"try again ({type(error).__name__})"

    toolkit = Toolkit(error_formatter=describe, tools=[coroutine])
    view = toolkit.view(caller="ann")

    (response,) = await read(view.call_tool_function({**block("coroutine"), "id": "c1"}))

    assert (response.text, response.code) == ("try again (KeyError)", "failed")
    assert seen == [(response.exception, FailedCall("coroutine", "c1", "ann"))]


async def test_a_formatter_is_asked_about_tools_that_are_called_by_themselves_and_middlewares() -> None:
    toolkit = Toolkit(error_formatter=lambda error, failed: f"{failed.tool} failed", tools=[coroutine, len])

    async def broken(kwargs: Any, next_handler: Any) -> AsyncIterator[ToolResponse]:
        raise LookupError("nowhere")
        yield

    alone = await read(toolkit.tools["coroutine"].call(arguments={}))
    toolkit.register_middleware(broken)
    within = await last(toolkit, "len", obj="x")

    assert (alone[-1].text, within.text) == ("coroutine failed", "len failed")


@pytest.mark.parametrize("formatter", [lambda error, call: 1 / 0, lambda error, call: 3, lambda: "x"])
async def test_a_formatter_that_fails_is_logged_and_replaced(formatter: Any, caplog: Log) -> None:
    toolkit = Toolkit(error_formatter=formatter, tools=[coroutine])

    response = await toolkit.call("coroutine")

    assert response.text == "Error: The tool 'coroutine' failed."
    assert [record.getMessage().split(" raised")[0] for record in caplog.records] == [
        "tool 'coroutine'",
        "the error_formatter of tool 'coroutine'",
    ]


def test_a_formatter_is_callable() -> None:
    with pytest.raises(TypeError, match="error_formatter must be callable, not str"):
        Toolkit(error_formatter="x")  # type: ignore[arg-type]


# Secrets


async def test_presets_and_secrets_are_masked_everywhere(caplog: Log) -> None:
    toolkit = Toolkit()
    events: list[Any] = []
    toolkit.subscribe("error", events.append)

    async def login(user: str, password: str, key: str) -> None:
        raise ValueError(f"no user {user} with {password!r} at {key}")

    toolkit.register_tool_function(login, preset_kwargs={"key": "sk-12345"}, secrets=["password"])

    response = await toolkit.call("login", user="ann", password="it's me")

    assert response.text == 'ValueError: no user ann with "***" at ***'
    assert "sk-12345" not in caplog.text
    assert "it's me" not in caplog.text
    assert "in login" in caplog.text
    assert events[0].data == {"error": "ValueError", "message": 'no user ann with "***" at ***'}
    assert "sk-12345" in str(response.exception)


async def test_the_text_of_a_formatter_is_masked() -> None:
    toolkit = Toolkit(error_formatter=lambda error, call: f"it said {error}")

    async def fetch(key: str) -> None:
        raise PermissionError(key)

    toolkit.register_tool_function(fetch, preset_kwargs={"key": "sk-12345"})

    assert (await toolkit.call("fetch")).text == "it said ***"


async def test_a_secret_in_a_json_text_of_arguments_is_masked() -> None:
    toolkit = Toolkit()

    async def login(password: str) -> None:
        raise ValueError(password)

    toolkit.register_tool_function(login, secrets=["password"])
    request = {"id": "1", "type": "function", "function": {"name": "login", "arguments": '{"password": "hunter2"}'}}

    (response,) = await read(toolkit.call_tool_function(request))

    assert response.text == "ValueError: ***"


class Account(enum.Enum):
    MAIN = "acc-main-0042"


@dataclasses.dataclass
class Login:
    user: str
    password: str


class Settings(pydantic.BaseModel):
    token: pydantic.SecretStr
    host: str


class Handle:
    def __init__(self, key: str) -> None:
        self.key = key

    def __repr__(self) -> str:
        return f"Handle({self.key})"


class Unwritable:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("preset", "quote", "hidden"),
    [
        (uuid.UUID(int=0x1234ABCD), str, "1234abcd"),
        (pathlib.PurePosixPath("/srv/keys/main"), repr, "/srv/keys"),
        (decimal.Decimal("1234.5678"), str, "1234"),
        (datetime.date(2031, 2, 3), repr, "2031"),
        (Account.MAIN, repr, "acc-main"),
        (Account.MAIN, lambda account: account.value, "acc-main"),
        (Login("ann", "hunter-two"), repr, "hunter"),
        (Login("ann", "hunter-two"), lambda login: login.password, "hunter"),
        ([Login("ann", "hunter-two")], lambda logins: logins[0].password, "hunter"),
        (
            Settings(token=pydantic.SecretStr("tok-abcdef"), host="db.internal"),
            lambda settings: f"{settings.token.get_secret_value()} at {settings.host}",
            "tok-",
        ),
        (Handle("key-123456"), str, "key-1"),
        (bytearray(b"raw-secret"), bytes, "raw-secret"),
        (Unwritable(), lambda _: "nothing is quoted", "no text"),
    ],
)
async def test_a_preset_of_any_type_is_masked(preset: Any, quote: Callable[[Any], Any], hidden: str) -> None:
    toolkit = Toolkit()

    def sign(text: str, key: Any) -> str:
        raise ValueError(f"cannot sign with {quote(key)}")

    toolkit.register_tool_function(sign, preset_kwargs={"key": preset})

    response = await toolkit.call("sign", text="x")

    assert response.code == "failed"
    assert hidden not in response.text


async def test_a_short_preset_is_masked_as_a_word_only() -> None:
    toolkit = Toolkit()

    async def page(number: int, token: object) -> None:
        raise ValueError(f"page {number} of 11 ({token})")

    toolkit.register_tool_function(page, preset_kwargs={"number": 1, "token": {"nested": [b"hidden"]}})

    assert (await toolkit.call("page")).text == "ValueError: page *** of 11 ({'nested': [b'***']})"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit of file descriptors")
def test_the_first_failure_is_reported_without_a_file_descriptor() -> None:
    program = """
        import asyncio, contextlib, os, resource
        from toolcrib import Toolkit

        toolkit = Toolkit(error_formatter=lambda error, call: f"{call.tool}: {error}")

        @toolkit.tool
        async def fail():
            raise ValueError("reason")

        async def main():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
            with contextlib.suppress(OSError):
                while True:
                    os.open(os.devnull, os.O_RDONLY)
            return (await toolkit.call("fail")).text

        print(asyncio.run(main()), flush=True)
        os._exit(0)
    """

    finished = python(program)

    assert finished.stdout == "fail: reason\n"
    assert "tool 'fail' raised ValueError" in finished.stderr
    assert "Too many open files" not in finished.stderr
