"""The structured finish: a wrapper that validates a tool's arguments with a pydantic model before the tool runs."""

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
    """The interface of a pydantic model class."""

    def model_validate(self, obj: Any) -> Any:
        """Return an instance, or raise pydantic's `ValidationError`."""


class Finish:
    """Wraps a function: validates the model's data, runs the function, and adds the data to its last response.

    Args:
        model: The pydantic model class.
        fields: The names of the model's fields.
        passed: Those fields that are also parameters of the function.
    """

    def __init__(self, model: Model, fields: frozenset[str], passed: frozenset[str]) -> None:
        self._model = model
        self._fields = fields
        self._passed = passed

    def around_function(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function with any result, also an awaitable or a generator."""

        def finish(*args: Any, **kwargs: Any) -> Any:
            data = self._validated(kwargs)
            return data if isinstance(data, ToolResponse) else _completed(function(*args, **kwargs), data)

        return finish

    def around_coroutine(self, function: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        """Wrap a coroutine function."""

        async def finish(*args: Any, **kwargs: Any) -> Any:
            data = self._validated(kwargs)
            return data if isinstance(data, ToolResponse) else _completed(await function(*args, **kwargs), data)

        return finish

    def around_generator(self, function: Callable[..., Generator[Any, Any, Any]]) -> Callable[..., Any]:
        """Wrap a generator function."""

        def finish(*args: Any, **kwargs: Any) -> Generator[ToolResponse, None, None]:
            data = self._validated(kwargs)
            if isinstance(data, ToolResponse):
                yield data
            else:
                yield from _complete_last(function(*args, **kwargs), data)

        return finish

    def around_async_generator(self, function: Callable[..., AsyncGenerator[Any, Any]]) -> Callable[..., Any]:
        """Wrap an async generator function."""

        def finish(*args: Any, **kwargs: Any) -> AsyncGenerator[ToolResponse, None]:
            data = self._validated(kwargs)
            if isinstance(data, ToolResponse):
                return _single(data)
            return _complete_last_async(function(*args, **kwargs), data)

        return finish

    def _validated(self, kwargs: dict[str, Any]) -> dict[str, Any] | ToolResponse:
        """Return the data, or the response to invalid data; remove fields from `kwargs` that are not parameters."""
        sent = {name: value for name, value in kwargs.items() if name in self._fields}
        for name in sent.keys() - self._passed:
            del kwargs[name]
        # There is a model class, so pydantic is imported already.
        invalid: type[Exception] = sys.modules["pydantic"].ValidationError
        try:
            data: dict[str, Any] = self._model.model_validate(sent).model_dump()
        except invalid as error:
            return _failed(_as_response(f"{REFUSAL}{error}"), "invalid_arguments")
        return data


def _completed(result: Any, data: dict[str, Any]) -> Any:
    """Add the data to the result of a function, or to that of the awaitable or generator that it returned."""
    if isinstance(result, ToolResponse):
        return _with_data(result, data)
    if inspect.isawaitable(result):
        return _completed_later(result, data)
    if hasattr(type(result), "__anext__"):
        return _complete_last_async(result, data)
    if isinstance(result, GeneratorType):
        return _complete_last(result, data)
    return _with_data(_as_response(result), data)


async def _completed_later(pending: Awaitable[Any], data: dict[str, Any]) -> Any:
    return _completed(await pending, data)


async def _single(response: ToolResponse) -> AsyncGenerator[ToolResponse, None]:
    yield response


def _complete_last(chunks: Generator[Any, Any, Any], data: dict[str, Any]) -> Generator[ToolResponse, None, None]:
    """Add the data to the last chunk. Each chunk is held back until the next one or the end."""
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
            held = _copied(chunk)
    finally:
        chunks.close()
    yield _with_data(_as_response() if held is None else held, data)


async def _complete_last_async(chunks: AsyncIterator[Any], data: dict[str, Any]) -> AsyncGenerator[ToolResponse, None]:
    """Add the data to the last chunk of an async iterator, as `_complete_last` does."""
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
            held = _copied(chunk)
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
    yield _with_data(_as_response() if held is None else held, data)


def _copied(chunk: Any) -> ToolResponse:
    """Copy a chunk, because its tool may change it while it is held back."""
    kept = copy.copy(_as_response(chunk))
    if isinstance(kept.content, list):
        kept.content = [copy.copy(block) for block in kept.content]
    return kept


def _with_data(response: ToolResponse, data: dict[str, Any]) -> ToolResponse:
    """Add the data to the last response, unless the response reports a failure."""
    metadata = response.metadata or {}
    response = copy.copy(response)
    response.is_last = True
    if not response.ok or metadata.get("success") is False:
        return _failed(response, response.code)
    message = metadata.get("response_msg")
    if message is None:
        message = {"role": "assistant", "content": response.text, "metadata": data}
    response.metadata = {**metadata, "success": True, "response_msg": message, "structured_output": data}
    return response


def _failed(response: ToolResponse, code: str | None) -> ToolResponse:
    nothing = {"response_msg": None, "structured_output": None}
    response.metadata = {**nothing, **(response.metadata or {}), "success": False}
    response.code = code
    return response
