"""An agent whose model has no tool API: the calls and the results are text.

The model follows a script, so no API key and no network are needed. Read it from the top: the tools, the agent loop,
the script of the model.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TypeAlias

from toolcrib import TextParser, ToolCall, Toolkit, format_tool_result

# ---------------------------------------------------------------------------------------------------------------------
# The tools: plain Python functions.

SHELF: dict[str, str] = {}


def save(name: str, content: str) -> str:
    """Put a text on the shelf.

    Args:
        name: What it is called.
        content: The text itself.
    """
    SHELF[name] = content
    return f"saved {len(content)} characters"


def find(word: str, names: list[str] | None = None) -> dict[str, int]:
    """Count a word in the texts on the shelf.

    Args:
        word: What to look for.
        names: The texts to look in; all of them if it is left out.
    """
    return {name: text.count(word) for name, text in SHELF.items() if names is None or name in names}


# ---------------------------------------------------------------------------------------------------------------------
# The agent: describe the tools in the prompt, parse the text as it streams, run the calls, return the results.

Message: TypeAlias = dict[str, str]


async def agent(toolkit: Toolkit, model: "ScriptedModel", task: str) -> None:
    """Run the loop until the model makes no more calls."""
    messages = [
        {"role": "system", "content": f"You keep texts on a shelf.\n\n{toolkit.instructions()}"},
        {"role": "user", "content": task},
    ]
    while True:
        answer, calls = await read(toolkit, model.reply(messages))
        messages.append({"role": "assistant", "content": answer})
        if not calls:
            return
        results = [await run(toolkit, call) for call in calls]
        messages.append({"role": "user", "content": "\n".join(results)})


async def read(toolkit: Toolkit, deltas: AsyncIterator[str]) -> tuple[str, list[ToolCall]]:
    """Split the model's text into prose, which is printed at once, and calls."""
    parser = TextParser(tools=toolkit)
    answer, calls = "", []
    print("model: ", end="")
    async for delta in deltas:
        answer += delta
        calls += show(parser.feed(delta))
    calls += show(parser.finish())
    print()
    return answer, calls


def show(pieces: list[str | ToolCall]) -> list[ToolCall]:
    """Print the prose and return the calls."""
    print(*(piece for piece in pieces if isinstance(piece, str)), sep="", end="", flush=True)
    return [piece for piece in pieces if isinstance(piece, ToolCall)]


async def run(toolkit: Toolkit, call: ToolCall) -> str:
    """Run one call and format its result for the model."""
    for repair in call.repairs:
        print(f"  mended: {repair['text']}")
    responses = [response async for response in toolkit.call_tool_function(call)]
    print(f"  {call.name or '?'} {call.arguments}: {responses[-1].code or 'ok'}")
    result = format_tool_result(call.name, responses[-1])
    print("".join(f"    {line}\n" for line in result.splitlines()), end="")
    return result


# ---------------------------------------------------------------------------------------------------------------------
# The model: it streams its script a few letters at a time, and raises if its input is not the expected one.

# For each turn: the text that the input must contain, and the model's text.
Script: TypeAlias = list[tuple[str, str]]

SCRIPT: Script = [
    (
        "### save",
        """I keep the loop first.
<tool_call>
  <name>save</name>
  <params>
    <name><![CDATA[loop.c]]></name>
    <content><![CDATA[for (i = 0; i < 007 && ok; i++) { }]]></content>
  </params>
</tool_call>""",
    ),
    (
        "saved 35 characters",
        """A call in a fence is only shown, never run:
```xml
<tool_call><name>save</name><params><name>x</name></params></tool_call>
```
Now I count.
<tool_call><name>find</name><params>
<word><![CDATA[007]]></word>
<names><item><![CDATA[loop.c]]></item></names>
</params></tool_call>""",
    ),
    (
        "<loop.c>1</loop.c>",
        """One more, and this time I forget to close a tag.
<tool_call><name>save</name><params>
<name><![CDATA[note]]></name>
<content><![CDATA[all is well]]></params></tool_call>""",
    ),
    ("saved 11 characters", "And now I am cut off: <tool_call><name>save</name><params><name><![CDATA[draft"),
    ("the text ends inside of the call", "Both texts are on the shelf."),
]


class ScriptedModel:
    """A model without a tool API."""

    def __init__(self, script: Script) -> None:
        self.script = iter(script)

    async def reply(self, messages: list[Message]) -> AsyncIterator[str]:
        """Stream the next turn of the script."""
        expected, text = next(self.script)
        told = messages[0]["content"] + messages[-1]["content"]
        if expected not in told:
            raise AssertionError(f"expected to read {expected!r}, but got {told}")
        for start in range(0, len(text), 7):
            await asyncio.sleep(0)  # a real model would wait for the network here
            yield text[start : start + 7]


def main() -> None:
    """Run the agent."""
    toolkit = Toolkit()
    toolkit.register_tool_function(save)
    toolkit.register_tool_function(find)
    asyncio.run(agent(toolkit, ScriptedModel(SCRIPT), "Keep the loop, and see how often 007 is in it."))
    print(f"shelf: {SHELF}")


if __name__ == "__main__":
    main()
