"""An MCP server with a tool for every kind of result. It needs only the standard library."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

ANYTHING = {"type": "object", "additionalProperties": True}
NUMBER = {
    "type": "object",
    "properties": {"a": {"type": "number", "title": "A"}, "b": {"type": "number", "title": "B", "default": 2}},
    "required": ["a"],
}
NUMBER_RESULT = {"type": "object", "properties": {"result": {"type": "number", "title": "Result"}}}
FAILURE = (
    "1 validation error for call[num]\na\n  Input should be a valid number, unable to parse string as a number "
    "[type=float_parsing, input_value='zz', input_type=str]\n"
    "    For further information visit https://errors.pydantic.dev/2.14/v/float_parsing"
)


def text(*texts: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in texts]}


def num(arguments: dict[str, Any]) -> dict[str, Any]:
    if isinstance(arguments.get("a"), str):
        return {**text(FAILURE), "isError": True}
    total = arguments["a"] + arguments.get("b", 2.0)
    return {**text(str(total)), "structuredContent": {"result": total}}


RESULTS: dict[str, Any] = {
    "audio": {"content": [{"type": "audio", "data": "QUJD", "mimeType": "audio/wav"}]},
    "empty": {"content": []},
    "empty_struct": {**text("{}"), "structuredContent": {}},
    "fails": {**text("Error calling tool 'fails': bad input"), "isError": True},
    "fails_silently": {"content": [{"type": "image", "data": "QUJD", "mimeType": "image/png"}], "isError": True},
    "image": {"content": [{"type": "image", "data": "QUJD", "mimeType": "image/png"}]},
    "link": {"content": [{"type": "resource_link", "name": "x", "uri": "file:///x.txt"}]},
    "nothing": {"content": []},
    "num": num,
    "obj": {**text('{"a": 1}'), "structuredContent": {"a": 1}},
    "pid": {**text(str(os.getpid())), "structuredContent": {"result": os.getpid()}},
    "res": {"content": [{"type": "resource", "resource": {"uri": "file:///x.txt", "text": "body"}, "_meta": {"k": 1}}]},
    "tagged": {**text('{"k": 1}'), "structuredContent": {"k": 1}},
    "text_json": text('{"a": [1, 2]}'),
    "text_number": text("42"),
    "text_plain": text("hello there"),
    "two_blocks": text("first", "second"),
    "unknown_block": {"content": [{"type": "hologram"}]},
}

DEFINITIONS: dict[str, dict[str, Any]] = {
    "empty_struct": {"outputSchema": ANYTHING},
    "num": {"description": "adds", "inputSchema": NUMBER, "outputSchema": NUMBER_RESULT},
    "obj": {"outputSchema": {"type": "object", "additionalProperties": {"type": "integer"}}},
    "tagged": {"outputSchema": ANYTHING, "_meta": {"_fastmcp": {"tags": ["math", "sums"]}}},
    "text_plain": {"_meta": {"fastmcp": {"tags": ["words"]}}},
    "text_json": {"_meta": {"_fastmcp": "not a mapping"}},
}


def reply(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        info = {"name": "cases", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "ping":
        return {}
    if method == "tools/list":
        nothing = {"type": "object", "properties": {}}
        return {"tools": [{"name": name, "inputSchema": nothing, **DEFINITIONS.get(name, {})} for name in RESULTS]}
    if method == "tools/call":
        result = RESULTS[params["name"]]
        answer: dict[str, Any] = result(params.get("arguments", {})) if callable(result) else result
        return answer
    return None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        result = reply(message["method"], message.get("params") or {})
        answer |= {"error": {"code": -32601, "message": "unknown method"}} if result is None else {"result": result}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
