"""A server with the tools that the conformance suite of MCP expects.

It prints its address on the first line, and serves until it is ended. The port is the first argument, if there is one.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from toolcrib import Toolkit, ToolResponse
from toolcrib.context import ToolContext

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="

toolkit = Toolkit()


def media(kind: str, media_type: str, data: str) -> Any:
    """Return a block of media."""
    return {"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}}


def resource(uri: str, media_type: str, text: str) -> Any:
    """Return a block with an embedded resource."""
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "text": text}}


@toolkit.tool
async def test_simple_text() -> str:
    """Return text."""
    return "This is a simple text response for testing."


@toolkit.tool
async def test_image_content() -> ToolResponse:
    """Return an image."""
    return ToolResponse([media("image", "image/png", PIXEL)])


@toolkit.tool
async def test_audio_content() -> ToolResponse:
    """Return a sound."""
    return ToolResponse([media("audio", "audio/wav", SOUND)])


@toolkit.tool
async def test_embedded_resource() -> ToolResponse:
    """Return a resource."""
    return ToolResponse([resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")])


@toolkit.tool
async def test_multiple_content_types() -> ToolResponse:
    """Return text, an image and a resource."""
    text: Any = {"type": "text", "text": "Multiple content types test:"}
    data = resource("test://mixed-content-resource", "application/json", '{"test": "data", "value": 123}')
    return ToolResponse([text, media("image", "image/png", PIXEL), data])


@toolkit.tool
async def test_error_handling() -> str:
    """Fail."""
    raise RuntimeError("This tool intentionally returns an error for testing")


@toolkit.tool
async def test_tool_with_progress(context: ToolContext) -> str:
    """Report progress."""
    for done in (0, 50, 100):
        context.progress(done, 100)
        await asyncio.sleep(0.05)
    return "done"


@toolkit.tool
async def test_tool_with_logging(context: ToolContext) -> str:
    """Log three messages."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        context.log.info(text)
        await asyncio.sleep(0.05)
    return "done"


@toolkit.tool
async def test_sampling(prompt: str, context: ToolContext) -> str:
    """Ask the client's model."""
    return f"LLM response: {await context.sample(prompt, max_tokens=100)}"


@toolkit.tool
async def test_elicitation(message: str, context: ToolContext) -> str:
    """Ask for a name and an address."""
    text = {"type": "string"}
    schema = {
        "type": "object",
        "properties": {
            "username": {**text, "description": "User's response"},
            "email": {**text, "description": "User's email address"},
        },
        "required": ["username", "email"],
    }
    return f"User response: {await context.ask(message, schema)}"


@toolkit.tool
async def test_elicitation_sep1034_defaults(context: ToolContext) -> str:
    """Ask with default values."""
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return f"Elicitation completed: {await context.ask('Check these', {'type': 'object', 'properties': properties})}"


@toolkit.tool
async def test_elicitation_sep1330_enums(context: ToolContext) -> str:
    """Ask for choices."""
    plain = {"type": "string", "enum": ["option1", "option2", "option3"]}
    titled = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]
    legacy = {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    }
    properties = {
        "untitledSingle": plain,
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": legacy,
        "untitledMulti": {"type": "array", "items": plain},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return f"Elicitation completed: {await context.ask('Choose', {'type': 'object', 'properties': properties})}"


async def json_schema_2020_12_tool(**arguments: Any) -> str:
    """Take an address."""
    return str(arguments)


toolkit.register_tool_function(
    json_schema_2020_12_tool,
    json_schema={
        "type": "function",
        "function": {
            "name": "json_schema_2020_12_tool",
            "description": "Tool with JSON Schema 2020-12 features",
            "parameters": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": {
                    "address": {
                        "type": "object",
                        "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
                    }
                },
                "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
                "additionalProperties": False,
            },
        },
    },
)


async def main(port: int) -> None:
    """Serve until the process is ended."""
    async with toolkit.serve_mcp("http", name="conformance", port=port, token=False) as server:
        print(server.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
