"""Files: file systems, grants, the service and its tools, as a user of the package sees them."""

import asyncio
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.loops import LoopFactory
from support.streams import block, last, python
from toolcrib import NativeTool, Policy, Toolkit, files, tools
from toolcrib.errors import FileAccessError, MissingFileError, NativeToolError
from toolcrib.files import DiskFileSystem, FileDomainService, FileHandle, FilePolicy

NAMES = [
    "read_text_file",
    "read_multiple_files",
    "list_directory",
    "list_directory_with_sizes",
    "search_files",
    "get_file_info",
    "list_allowed_directories",
    "fs_describe_permissions_markdown",
    "write_file",
    "edit_file",
    "delete_file",
]
ALL = ["list", "read", "write", "delete"]


def handle(folder: Path, prefix: str = "/workspace/", ops: list[str] = ALL) -> FileHandle:
    return DiskFileSystem(folder).create_handle([{"prefix": prefix, "ops": ops}])


def kit(folder: Path, **options: Any) -> Toolkit:
    own = Toolkit()
    tools.register(own, "files", root=folder, **options)
    return own


def test_a_file_system_has_three_roots(tmp_path: Path) -> None:
    system = DiskFileSystem(tmp_path)

    granted = [{"prefix": f"/{root}/", "ops": ALL} for root in ["userinput", "workspace", "internal"]]
    own = system.create_handle(granted)

    reading = ["list", "file", "read_binary", "read_file", "read_re"]
    assert own.permissions == [
        ("/userinput/", reading),
        ("/workspace/", [*reading, "write", "delete"]),
        ("/internal/", [*reading, "write"]),
    ]
    assert sorted(os.listdir(tmp_path)) == ["internal", "userinput", "workspace"]
    assert repr(system.create_handle(granted[:1])) == "FileHandle(/userinput/: ls, stat, read)"


def test_the_default_folder_has_the_time_as_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    DiskFileSystem()

    (folder,) = (tmp_path / "output").iterdir()
    assert re.fullmatch(r"\d{10}", folder.name)
    assert folder.name[:4] == time.strftime("%m%d")


def test_a_root_may_be_another_directory(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a").write_text("given")

    system = DiskFileSystem(tmp_path / "root", userinput_dir=tmp_path / "mine", create=True)

    assert system.create_handle([{"prefix": "/userinput/", "ops": ["read"]}]).read_file("/userinput/a") == "given"


def misspelt(folder: Path) -> list[Callable[[], object]]:
    """Every way to name a root, with a folder that does not exist."""
    (folder / "project").mkdir()
    wrong = folder / "proejct"
    return [
        lambda: kit(wrong),
        lambda: kit(wrong, write=True),
        lambda: kit(Path(os.path.relpath(wrong))),
        lambda: DiskFileSystem(wrong),
        lambda: DiskFileSystem(folder, userinput_dir=wrong),
        lambda: DiskFileSystem(folder, workspace_dir=str(wrong)),
        lambda: DiskFileSystem(folder, internal_dir=wrong / "deeper"),
    ]


@pytest.mark.parametrize("way", range(7))
def test_a_root_that_does_not_exist_is_an_error(tmp_path: Path, way: int) -> None:
    with pytest.raises(MissingFileError, match=r"there is no such folder.*did you mean `.*project`") as caught:
        misspelt(tmp_path)[way]()

    assert isinstance(caught.value, FileNotFoundError)
    assert str(caught.value.filename).endswith("proejct")
    assert not (tmp_path / "proejct").exists()


def test_a_root_is_created_if_asked(tmp_path: Path) -> None:
    own = kit(tmp_path / "new" / "root", create=True, write=True)
    DiskFileSystem(tmp_path / "other" / "root", internal_dir=tmp_path / "notes", create=True)

    assert own.run("write_file", path="/workspace/a", content="x").code is None
    assert (tmp_path / "new" / "root" / "a").read_text() == "x"
    assert sorted(os.listdir(tmp_path / "other" / "root")) == ["userinput", "workspace"]
    assert (tmp_path / "notes").is_dir()
    with pytest.raises(MissingFileError) as caught:
        kit(tmp_path / "nothing like it")
    assert "did you mean" not in str(caught.value)


def test_a_directory_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(FileAccessError):
        DiskFileSystem(tmp_path / "file")


@pytest.mark.parametrize(
    ("grant", "error", "text"),
    [
        ({"prefix": "/workspace/", "ops": ["red"]}, files.InvalidArgumentError, "did you mean `read`"),
        ({"prefix": "/etc/", "ops": ["read"]}, files.InvalidArgumentError, "in no root"),
        ({"prefix": "workspace", "ops": ["read"]}, files.InvalidPathError, "not absolute"),
        ({"prefix": "/workspace/../", "ops": ["read"]}, files.InvalidPathError, "contains"),
    ],
)
def test_an_invalid_grant_is_an_error(tmp_path: Path, grant: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        DiskFileSystem(tmp_path).create_handle([grant])


def test_a_handle_has_the_operations_of_its_grants(tmp_path: Path) -> None:
    own = handle(tmp_path)

    assert own.write("/workspace/notes/a.txt", "one\ntwo\n") == 8
    assert own.write("/workspace/b", b"\xff\x00") == 2
    assert own.read_binary("/workspace/b") == b"\xff\x00"
    assert own.read_file("/workspace/notes/a.txt", 2) == "two"
    assert own.read_re("/workspace/notes/a.txt", "^t") == [(2, "two")]
    assert own.list("/workspace/") == [
        {"name": "b", "type": "file", "size": 2},
        {"name": "notes", "type": "directory", "size": None},
    ]
    facts = own.file("/workspace/notes/a.txt")
    assert (facts["path"], facts["type"], facts["size"]) == ("/workspace/notes/a.txt", "file", 8)
    assert facts["modified"] == (tmp_path / "workspace/notes/a.txt").stat().st_mtime
    own.delete("/workspace/b")
    with pytest.raises(files.NotFoundError, match="No such file or directory: /workspace/b"):
        own.read_binary("/workspace/b")


@pytest.mark.parametrize("operation", ["list", "file", "read_binary", "read_file", "read_re", "write", "delete"])
def test_an_operation_without_a_grant_is_denied(tmp_path: Path, operation: str) -> None:
    others = {"list", "file", "read_binary", "read_file", "read_re", "write", "delete"} - {operation}
    own = handle(tmp_path, ops=sorted(others))
    more = {"read_re": ["x"], "write": ["x"]}.get(operation, [])

    with pytest.raises(files.AccessDeniedError) as caught:
        getattr(own, operation)("/workspace/a", *more)

    assert str(caught.value) == f"Access denied for operation '{operation}' on path /workspace/a"
    assert isinstance(caught.value, RuntimeError)


def test_the_tools_of_a_service_come_in_pairs_for_a_preset(tmp_path: Path) -> None:
    service = FileDomainService(handle(tmp_path), FilePolicy(durable=False))
    own = Toolkit()
    for function, preset in service.tools():
        own.register_tool_function(function, preset_kwargs={"service": preset})

    written = own.run("write_file", path="/workspace/a", content="one\ntwo")
    answer = own.run("read_text_file", path="/workspace/a", start_line=2)

    assert list(own.tools) == NAMES
    assert "service" not in str(own.get_json_schemas())
    assert (own.tools["write_file"].kind, own.tools["delete_file"].kind) == ("edit", "delete")
    assert written.text == "wrote 7 bytes to /workspace/a"
    assert answer.text == "line_count: 2\nformat: line{N}: <content>\nline2: two"
    assert own.run("read_text_file", path="/workspace/b").text == "Error: No such file or directory: /workspace/b"


def test_the_model_cannot_choose_the_service(tmp_path: Path) -> None:
    own = Toolkit()
    for function, service in FileDomainService(handle(tmp_path)).tools():
        own.register_tool_function(function, preset_kwargs={"service": service})

    response = own.run("list_directory", path="/workspace/", service="mine")

    assert response.code == "invalid_arguments"


def test_a_service_has_the_tools_that_its_grants_permit(tmp_path: Path) -> None:
    service = FileDomainService(handle(tmp_path, ops=["list"]))

    assert [tool.name for tool in service.native_tools()] == [*NAMES[2:5], *NAMES[6:8]]
    assert service.tool("list_directory").kind == "read"
    with pytest.raises(files.InvalidArgumentError, match="unknown file tool `write_file`: expected one of list_dir"):
        service.tool("write_file")


def test_an_edit_needs_the_right_to_read(tmp_path: Path) -> None:
    system = DiskFileSystem(tmp_path)
    write = {"prefix": "/workspace/", "ops": ["write"]}
    read = {"prefix": "/workspace/open/", "ops": ["read"]}

    writer = FileDomainService(system.create_handle([write]), FilePolicy(durable=False))
    own = Toolkit(tools=FileDomainService(system.create_handle([write, read])).native_tools())

    assert "edit_file" not in [tool.name for tool in writer.native_tools()]
    edits = [{"oldText": "a", "newText": "b"}]
    for path, answer in [
        ("/workspace/a", "Error: Access denied for operation 'read_file' on path /workspace/a"),
        ("/workspace/open/a", "edited /workspace/open/a (size=1)"),
    ]:
        own.run("write_file", path=path, content="a")
        assert own.run("edit_file", path=path, edits=edits).text == answer


def test_a_search_in_all_folders_finds_files_of_the_first_one(tmp_path: Path) -> None:
    for name in ["a.py", "lib/b.py", "lib/deep/c.py", "lib/d.txt"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    own = kit(tmp_path)

    def found(pattern: str) -> str:
        return own.run("search_files", path="/workspace/", pattern=pattern).text

    assert found("**/*.py") == "/workspace/a.py\n/workspace/lib/b.py\n/workspace/lib/deep/c.py"
    assert found("lib/**/*.py") == "/workspace/lib/b.py\n/workspace/lib/deep/c.py"


def test_one_directory_is_registered_as_the_workspace(tmp_path: Path) -> None:
    own = Toolkit()

    reading = tools.register(own, "files", root=tmp_path)

    assert reading == NAMES[:8]
    assert all(isinstance(tool.original_func, NativeTool) for tool in own.tools.values())
    own.create_tool_group("disk", "Files.", active=True)
    assert tools.register(Toolkit(), "files", root=str(tmp_path), write=True) == NAMES
    with pytest.raises(ValueError, match="not found"):
        tools.register(Toolkit(), "files", root=tmp_path, group="disk")


def test_an_unknown_set_or_option_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown set of tools `file`: did you mean `files`"):
        tools.register(Toolkit(), "file")
    with pytest.raises(TypeError, match="root"):
        tools.register(Toolkit(), "files")
    with pytest.raises(TypeError, match="wirte"):
        tools.register(Toolkit(), "files", root=tmp_path, wirte=True)


async def test_the_tools_run_on_the_loop_of_the_caller(tmp_path: Path, loop_factory: LoopFactory) -> None:
    own = kit(tmp_path, write=True, policy=FilePolicy(durable=False))

    writes = [own.call("write_file", path=f"/workspace/{number}", content=str(number)) for number in range(50)]
    await asyncio.gather(*writes)
    reads = [own.call("read_text_file", path=f"/workspace/{number}", with_header=False) for number in range(50)]

    assert [response.text for response in await asyncio.gather(*reads)] == [f"line1: {number}" for number in range(50)]
    assert len(list(tmp_path.iterdir())) == 50


async def test_edits_that_do_not_match_once_are_answered(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x y\nx")
    own = kit(tmp_path, write=True)

    async def edit(old: str) -> str:
        edits = [{"oldText": old, "newText": "z"}]
        return (await last(own.call_tool_function(block("edit_file", path="/workspace/a", edits=edits)))).text

    assert await edit("q") == 'Error: oldText of edit 1 does not occur in the file: "q"'
    assert await edit("x") == "Error: oldText of edit 1 occurs more than once, in lines 1, 2: add text around it"
    assert await edit("x y") == "edited /workspace/a (size=3)"
    assert (tmp_path / "a").read_text() == "z\nx"


async def test_without_a_toolkit_an_error_is_raised(tmp_path: Path) -> None:
    service = FileDomainService(handle(tmp_path))

    with pytest.raises(NativeToolError, match="Invalid path a: it is not absolute"):
        await service.tool("read_text_file")(path="a")


@pytest.mark.parametrize("errors", ["respond", "raise"])
async def test_a_mistake_of_the_model_is_answered_and_not_logged(
    tmp_path: Path, errors: Any, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a").write_text("x")
    own = Toolkit(errors=errors)
    tools.register(own, "files", root=tmp_path, write=True)
    calls: list[dict[str, Any]] = [
        block("read_text_file", path="/workspace/none"),
        block("read_text_file", path="/etc/passwd"),
        block("read_text_file", path="a/../b"),
        block("read_text_file", path="/workspace/a", start_line=9),
        block("list_directory", path="/workspace/a"),
        block("search_files", path="/workspace/", pattern="[z-a]"),
        block("edit_file", path="/workspace/a", edits=[{"oldText": "q", "newText": ""}]),
        block("delete_file", path="/workspace/none"),
        block("write_file", path="/workspace", content=""),
    ]

    for call in calls:
        if errors == "respond":
            response = await last(own.call_tool_function(call))
            assert (response.code, response.text[:7]) == ("failed", "Error: ")
            assert response.exception is not None
        else:
            with pytest.raises(NativeToolError) as caught:
                await last(own.call_tool_function(call))
            assert caught.value.is_mistake

    assert caplog.records == []


@pytest.mark.parametrize("arguments", ["coerce", "check", "pass"])
@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("read_text_file", {"path": "/workspace/\ud800"}),
        ("read_multiple_files", {"paths": ["/workspace/a", "\udfff"]}),
        ("write_file", {"path": "/workspace/a", "content": "x\udc00"}),
        ("edit_file", {"path": "/workspace/a", "edits": [{"oldText": "\ud800", "newText": ""}]}),
        ("view_text_file", {"file_path": "\ud800"}),
        ("execute_shell_command", {"command": "echo \ud800"}),
    ],
)
async def test_a_lone_surrogate_is_an_invalid_argument(
    tmp_path: Path, name: str, sent: dict[str, Any], arguments: Any, caplog: pytest.LogCaptureFixture
) -> None:
    own = Toolkit(arguments=arguments)
    tools.register(own, "files", root=tmp_path, write=True)
    tools.register(own, "text_files")
    tools.register(own, "programs", cwd=tmp_path)

    response = await last(own.call_tool_function(block(name, **sent)))

    assert response.code == "invalid_arguments"
    assert "surrogate" in response.text
    assert caplog.records == []
    assert os.listdir(tmp_path) == []


def test_many_excluded_patterns_cost_little_or_are_refused(tmp_path: Path) -> None:
    for number in range(5_000):
        (tmp_path / f"name-{number:05}").touch()
    own = kit(tmp_path, policy=FilePolicy(max_entries=10))

    def search(patterns: list[str]) -> Any:
        return own.run("search_files", path="/workspace/", pattern="name-0499", excludePatterns=patterns)

    began = time.monotonic()
    refused = search([f"*{number}x*" for number in range(2_000)])
    most = search([f"*{number}x*" for number in range(100)])
    texts = search(["name-04990", *(f"no such name {number}" for number in range(90))])
    took = time.monotonic() - began

    assert refused.code == "invalid_arguments"
    assert "100" in refused.text
    assert most.text.splitlines() == [f"/workspace/name-0499{digit}" for digit in range(10)]
    assert texts.text.splitlines() == [f"/workspace/name-0499{digit}" for digit in range(1, 10)]
    assert took < 10


def test_a_huge_file_is_answered_at_once(tmp_path: Path) -> None:
    with open(tmp_path / "huge", "wb") as file:
        file.write(b"one\ntwo\n")
        file.truncate(20 << 30)
    own = kit(tmp_path)
    handle = files._over(tmp_path, write=False, policy=None, create=False).handle

    began = time.monotonic()
    one = own.run("read_text_file", path="/workspace/huge", read_lines=1)
    last_line = own.run("read_text_file", path="/workspace/huge", start_line=3, read_lines=1)
    beyond = own.run("read_text_file", path="/workspace/huge", start_line=10)
    found = handle.read_re("/workspace/huge", "^tw")
    took = time.monotonic() - began

    assert one.text.endswith("line1: one")
    assert last_line.metadata is not None
    assert last_line.metadata["truncated"]
    assert beyond.code == "failed"
    assert found == [(2, "two")]
    assert took < 20


def test_rules_apply_by_kind(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    own = Toolkit(policy=Policy([{"kind": "delete", "decision": "deny"}]))
    tools.register(own, "files", root=tmp_path, write=True)

    assert own.run("delete_file", path="/workspace/a").code == "denied"
    assert own.run("write_file", path="/workspace/b", content="").code is None
    assert (tmp_path / "a").exists()


@pytest.mark.timeout(300)
def test_a_huge_file_is_read_in_little_memory(tmp_path: Path) -> None:
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 30)
    with open(tmp_path / "lines", "wb") as file:
        for _ in range(16):
            file.write(b"0123456789abcde\n" * (1 << 16))
        file.truncate(1 << 30)
    program = f"""
        import resource
        from toolcrib import Toolkit, tools
        kit = Toolkit()
        tools.register(kit, "files", root={str(tmp_path)!r})
        tools.register(kit, "text_files")
        kit.run("read_text_file", path="/workspace/none")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for name in ["huge", "lines"]:
            response = kit.run("read_text_file", path=f"/workspace/{{name}}")
            assert response.metadata["truncated"] and len(response.text) < 300_000, response
        assert response.metadata["line_count"] == (1 << 20) + 1
        response = kit.run("read_text_file", path="/workspace/lines", start_line=1 << 20, read_lines=1)
        assert response.text.endswith(": 0123456789abcde"), response
        response = kit.run("view_text_file", file_path={str(tmp_path / "lines")!r}, ranges=[1 << 20, 1 << 20])
        assert response.text.endswith(": 0123456789abcde\\n```"), response
        response = kit.run("read_multiple_files", paths=["/workspace/lines", "/workspace/huge"])
        assert len(response.text) < 300_000
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(f"grown {{grown // 1024}} MiB")
        assert grown < 32 * 1024
    """

    done = python(program, seconds=250, TOOLCRIB_DANGEROUS_TEXT_IO="allow")

    assert done.returncode == 0, done.stderr


def test_a_process_that_is_killed_while_it_writes_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    program = f"""
        import os, signal, threading, random
        from toolcrib.files import DiskFileSystem
        own = DiskFileSystem({str(tmp_path)!r}).create_handle([{{"prefix": "/workspace/", "ops": ["write"]}}])
        threading.Timer(random.uniform(0.001, 0.05), os.kill, (os.getpid(), signal.SIGKILL)).start()
        for number in range(1_000_000):
            own.write("/workspace/a", str(number % 10) * 200_000)
    """
    reader = handle(tmp_path)
    reader.write("/workspace/a", "start" * 40_000)

    for _ in range(20):
        assert python(program).returncode == -signal.SIGKILL
        content = reader.read_binary("/workspace/a")
        assert len(content) == 200_000
        assert content == content[:1] * 200_000 or content.startswith(b"start")

    reader.write("/workspace/a", "end")
    assert os.listdir(tmp_path / "workspace") == ["a"]
