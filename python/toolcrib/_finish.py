"""The structured finish: a wrapper that validates a tool's arguments with a pydantic model before the tool runs."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from functools import partial
from types import GeneratorType
from typing import Any, Protocol

from toolcrib._core import ToolResponse, _as_response, _Completion

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

    def around_function(self, function: Callable[..., Any], collected: bool) -> Callable[..., Any]:
        """Wrap a function with any result, also an awaitable or a generator.

        Args:
            function: The function.
            collected: True if the stream collects the chunks of a generator to a whole result, to which the data is
                then added; otherwise it is added to the last chunk.
        """

        def finish(*args: Any, **kwargs: Any) -> Any:
            data = self._validated(kwargs)
            return data if isinstance(data, ToolResponse) else _completed(function(*args, **kwargs), data, collected)

        return finish

    def around_coroutine(self, function: Callable[..., Awaitable[Any]], collected: bool) -> Callable[..., Any]:
        """Wrap a coroutine function; see `around_function`."""

        async def finish(*args: Any, **kwargs: Any) -> Any:
            data = self._validated(kwargs)
            if isinstance(data, ToolResponse):
                return data
            return _completed(await function(*args, **kwargs), data, collected)

        return finish

    def around_generator(
        self, function: Callable[..., Generator[Any, Any, Any]], collected: bool
    ) -> Callable[..., Any]:
        """Wrap a generator function; see `around_function`."""

        def finish(*args: Any, **kwargs: Any) -> Generator[Any, None, None]:
            data = self._validated(kwargs)
            if isinstance(data, ToolResponse):
                yield _Completion(partial(_replaced, data)) if collected else data
            else:
                yield from _stream(function(*args, **kwargs), data, collected)

        return finish

    def around_async_generator(
        self, function: Callable[..., AsyncGenerator[Any, Any]], collected: bool
    ) -> Callable[..., Any]:
        """Wrap an async generator function; see `around_function`."""

        def finish(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
            data = self._validated(kwargs)
            if isinstance(data, ToolResponse):
                return _single(_Completion(partial(_replaced, data)) if collected else data)
            return _async_stream(function(*args, **kwargs), data, collected)

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


def _completed(result: Any, data: dict[str, Any], collected: bool) -> Any:
    """Add the data to the result of a function, or to that of the awaitable or generator that it returned."""
    if isinstance(result, ToolResponse):
        return _with_data(result, data)
    if inspect.isawaitable(result):
        return _completed_later(result, data, collected)
    if hasattr(type(result), "__anext__"):
        return _async_stream(result, data, collected)
    if isinstance(result, GeneratorType):
        return _stream(result, data, collected)
    return _with_data(_as_response(result), data)


async def _completed_later(pending: Awaitable[Any], data: dict[str, Any], collected: bool) -> Any:
    return _completed(await pending, data, collected)


async def _single(item: Any) -> AsyncGenerator[Any, None]:
    yield item


def _replaced(response: ToolResponse, _whole: ToolResponse) -> ToolResponse:
    return response


def _stream(chunks: Generator[Any, Any, Any], data: dict[str, Any], collected: bool) -> Generator[Any, None, None]:
    return _complete_whole(chunks, data) if collected else _complete_last(chunks, data)


def _async_stream(chunks: AsyncIterator[Any], data: dict[str, Any], collected: bool) -> AsyncGenerator[Any, None]:
    return _complete_whole_async(chunks, data) if collected else _complete_last_async(chunks, data)


def _complete_whole(chunks: Generator[Any, Any, Any], data: dict[str, Any]) -> Generator[Any, None, None]:
    """Pass the chunks on, and let the stream add the data to the whole result."""
    yield from chunks
    yield _Completion(partial(_with_data, data=data))


async def _complete_whole_async(chunks: AsyncIterator[Any], data: dict[str, Any]) -> AsyncGenerator[Any, None]:
    """Pass the chunks of an async iterator on, as `_complete_whole` does."""
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            await close()
    yield _Completion(partial(_with_data, data=data))


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
