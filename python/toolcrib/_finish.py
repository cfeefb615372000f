"""A structured finish: a tool whose data a pydantic model validates before the function runs."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from types import GeneratorType
from typing import Any, Protocol

from toolcrib._core import ToolResponse, _as_response

REFUSAL = "Arguments Validation Error: "


class Model(Protocol):
    """What is needed of a pydantic model class."""

    def model_validate(self, obj: Any) -> Any:
        """Give an instance, or raise pydantic's `ValidationError`."""


class Finish:
    """Stands around a function: validates, lets it run, and writes what was validated into its last response.

    Args:
        model: The pydantic model class.
        fields: The names that belong to the model.
        passed: Those of them that the function takes too.
    """

    def __init__(self, model: Model, fields: frozenset[str], passed: frozenset[str]) -> None:
        self._model = model
        self._fields = fields
        self._passed = passed

    def around_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function that may give anything, also something that is still to be run."""

        def finish(*args: Any, **kwargs: Any) -> Any:
            data = self._validated(kwargs)
            return data if isinstance(data, ToolResponse) else _settled(function(*args, **kwargs), data)

        return finish

    def around_coroutine(self, function: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        """Wrap a coroutine function."""

        async def finish(*args: Any, **kwargs: Any) -> Any:
            data = self._validated(kwargs)
            return data if isinstance(data, ToolResponse) else _settled(await function(*args, **kwargs), data)

        return finish

    def around_generator(self, function: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., Any]:
        """Wrap a generator function."""

        def finish(*args: Any, **kwargs: Any) -> Generator[ToolResponse, None, None]:
            data = self._validated(kwargs)
            if isinstance(data, ToolResponse):
                yield data
            else:
                yield from _last_filled(function(*args, **kwargs), data)

        return finish

    def around_async_generator(self, function: Callable[..., AsyncGenerator[Any, Any]]) -> Callable[..., Any]:
        """Wrap an async generator function."""

        def finish(*args: Any, **kwargs: Any) -> AsyncGenerator[ToolResponse, None]:
            data = self._validated(kwargs)
            if isinstance(data, ToolResponse):
                return _only(data)
            return _last_filled_async(function(*args, **kwargs), data)

        return finish

    def _validated(self, kwargs: dict[str, Any]) -> dict[str, Any] | ToolResponse:
        """Give the data, or the answer to data that does not fit; leave in `kwargs` what the function takes."""
        sent = {name: value for name, value in kwargs.items() if name in self._fields}
        for name in sent.keys() - self._passed:
            del kwargs[name]
        # A model class is at hand, so pydantic has been imported; by whom and in which version is not our business.
        refused: type[Exception] = sys.modules["pydantic"].ValidationError
        try:
            data: dict[str, Any] = self._model.model_validate(sent).model_dump()
        except refused as error:
            return _unfinished(_as_response(f"{REFUSAL}{error}"), "invalid_arguments")
        return data


def _settled(result: Any, data: dict[str, Any]) -> Any:
    """Fill what a function gave, or have it filled when it has run."""
    if isinstance(result, ToolResponse):
        return _filled(result, data)
    if inspect.isawaitable(result):
        return _settled_later(result, data)
    if hasattr(type(result), "__anext__"):
        return _last_filled_async(result, data)
    if isinstance(result, GeneratorType):
        return _last_filled(result, data)
    return _filled(_as_response(result), data)


async def _settled_later(pending: Awaitable[Any], data: dict[str, Any]) -> Any:
    return _settled(await pending, data)


async def _only(response: ToolResponse) -> AsyncGenerator[ToolResponse, None]:
    yield response


def _last_filled(chunks: Generator[Any, Any, Any], data: dict[str, Any]) -> Generator[ToolResponse, None, None]:
    """Hold each chunk back until it is known whether it is the last."""
    held: ToolResponse | None = None
    try:
        while True:
            try:
                chunk = next(chunks)
            except StopIteration:
                break
            except Exception:
                if held is not None:
                    yield held
                raise
            if held is not None:
                yield held
            held = _kept(chunk)
    finally:
        chunks.close()
    yield _filled(_as_response() if held is None else held, data)


async def _last_filled_async(chunks: AsyncIterator[Any], data: dict[str, Any]) -> AsyncGenerator[ToolResponse, None]:
    """Do as `_last_filled` for chunks that have to be waited for."""
    held: ToolResponse | None = None
    try:
        while True:
            try:
                chunk = await chunks.__anext__()
            except StopAsyncIteration:
                break
            except Exception:
                if held is not None:
                    yield held
                raise
            if held is not None:
                yield held
            held = _kept(chunk)
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
    yield _filled(_as_response() if held is None else held, data)


def _kept(chunk: Any) -> ToolResponse:
    """Copy a chunk, because its tool may go on writing into it while it is held back."""
    kept = copy.copy(_as_response(chunk))
    if isinstance(kept.content, list):
        kept.content = [copy.copy(block) for block in kept.content]
    return kept


def _filled(response: ToolResponse, data: dict[str, Any]) -> ToolResponse:
    """Write the data into the last response, unless that says itself that the finish failed."""
    metadata = response.metadata or {}
    response = copy.copy(response)
    response.is_last = True
    if not response.ok or metadata.get("success") is False:
        return _unfinished(response, response.code)
    message = metadata.get("response_msg")
    if message is None:
        message = {"role": "assistant", "content": response.text, "metadata": data}
    response.metadata = {**metadata, "success": True, "response_msg": message, "structured_output": data}
    return response


def _unfinished(response: ToolResponse, code: str | None) -> ToolResponse:
    nothing = {"response_msg": None, "structured_output": None}
    response.metadata = {**nothing, **(response.metadata or {}), "success": False}
    response.code = code
    return response
