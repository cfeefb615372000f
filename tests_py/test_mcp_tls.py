"""MCP clients over HTTPS, with real handshakes: the authorities that they trust, and the addresses that they reach."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import select
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.certificates import Authority
from toolcrib import Toolkit, errors, mcp


async def saw(length: int) -> str:
    """Saw a board."""
    return f"{length} cm"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Make an authority that no system trusts."""
    return Authority(tmp_path_factory.mktemp("authority"), "workshop")


class Served:
    """A server behind TLS, and the connections that reached it."""

    def __init__(self, port: int, token: str | None) -> None:
        self.port, self.token = port, token
        self.handshakes: list[str | None] = []

    def client(self, host: str = "localhost", **options: Any) -> mcp.McpClient:
        url = f"https://{host}:{self.port}/mcp"
        return mcp.McpClient("workshop", url, token=self.token, connect_timeout=20, **options)


@asynccontextmanager
async def served(certificate: tuple[Path, Path], host: str = "127.0.0.1") -> AsyncIterator[Served]:
    """Serve a toolkit behind a proxy that speaks TLS."""
    async with Toolkit(tools=[saw]).serve_mcp("http") as plain:
        proxy = TlsProxy(certificate, host, plain.port)
        found = Served(proxy.port, plain.token)
        found.handshakes = proxy.handshakes
        try:
            yield found
        finally:
            await asyncio.to_thread(proxy.close)


class TlsProxy:
    """A proxy that speaks TLS on one side, in threads of its own."""

    def __init__(self, certificate: tuple[Path, Path], host: str, target: int) -> None:
        self.handshakes: list[str | None] = []
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*certificate)
        self._listener = socket.create_server((host, 0))
        self._listener.settimeout(0.05)
        self.port: int = self._listener.getsockname()[1]
        self._target = target
        self._is_over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def _start(self, run: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=run, args=arguments)
        thread.start()
        self._threads.append(thread)

    def _accept(self) -> None:
        with self._listener:
            while not self._is_over.is_set():
                with contextlib.suppress(TimeoutError):
                    self._start(self._serve, self._listener.accept()[0])

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(20)
        try:
            outer = self._context.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return
        self.handshakes.append(outer.version())
        with outer, socket.create_connection(("127.0.0.1", self._target)) as inner, contextlib.suppress(OSError):
            while not self._is_over.is_set():
                ready = [outer] if outer.pending() else select.select([outer, inner], [], [], 0.05)[0]
                for source in ready:
                    data = source.recv(65536)
                    if not data:
                        return
                    (inner if source is outer else outer).sendall(data)

    def close(self) -> None:
        """End all connections and threads."""
        self._is_over.set()
        while self._threads:
            self._threads.pop().join()


async def test_a_server_of_a_trusted_authority_is_called(authority: Authority) -> None:
    toolkit = Toolkit()
    async with served(authority.certificate("DNS:localhost", "IP:127.0.0.1")) as server:
        async with server.client(ca=authority.file) as client:
            await toolkit.register_mcp_client(client)
            response = await toolkit.call("saw", length=3)
        async with server.client("127.0.0.1", ca=str(authority.file)) as client:
            tools = await client.list_tools()

    assert response.text == "3 cm"
    assert [tool.name for tool in tools] == ["saw"]
    assert set(server.handshakes) == {"TLSv1.3"}


async def test_an_unknown_authority_is_refused(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    async with served(authority.certificate("DNS:localhost")) as server:
        for ca in (None, other.file):
            with pytest.raises(errors.McpConnectionError) as refused:
                await server.client(ca=ca).connect()
            text = str(refused.value)
            assert "certificate" in text
            assert "UnknownIssuer" in text
            assert "can be given as `ca`" in text

    assert server.handshakes == []


async def test_a_certificate_for_another_host_is_refused(authority: Authority) -> None:
    async with served(authority.certificate("DNS:workshop.example")) as server:
        for host in ("localhost", "127.0.0.1"):
            with pytest.raises(errors.McpConnectionError, match="certificate not valid for name"):
                await server.client(host, ca=authority.file).connect()

    assert server.handshakes == []


async def test_the_authorities_of_the_system_are_not_trusted_beside_a_given_one(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    other = Authority(tmp_path, "other")
    async with served(authority.certificate("DNS:localhost")) as server:
        with pytest.raises(errors.McpConnectionError, match="UnknownIssuer"):
            await server.client(ca=other.file).connect()


async def test_a_file_may_have_several_authorities(authority: Authority, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(Authority(tmp_path, "other").file.read_text() + authority.file.read_text())
    async with served(authority.certificate("DNS:localhost")) as server, server.client(ca=bundle) as client:
        assert client.is_connected


async def test_the_entry_of_a_configuration_may_name_the_file(authority: Authority) -> None:
    async with served(authority.certificate("DNS:localhost")) as server:
        entry = {"url": f"https://localhost:{server.port}/mcp", "ca": str(authority.file)}
        async with mcp.connect({"mcpServers": {"workshop": entry}}, token=server.token) as client:
            assert client.is_connected


async def test_plain_http_is_not_understood_as_tls(authority: Authority) -> None:
    async with Toolkit(tools=[saw]).serve_mcp("http") as plain:
        client = Served(plain.port, plain.token).client(ca=authority.file)
        with pytest.raises(errors.McpConnectionError, match="cannot connect"):
            await client.connect()


def test_wrong_files_of_authorities_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("nothing here")
    broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    (tmp_path / "broken.pem").write_text(broken)

    for file, reason in (("none.pem", "No such file"), ("empty.pem", "no certificate"), ("broken.pem", "invalid file")):
        with pytest.raises(ValueError, match=reason):
            mcp.connect("https://tools.example/mcp", ca=tmp_path / file)
    with pytest.raises(ValueError, match="`ca`: it does not apply to a command"):
        mcp.connect("server", ca=tmp_path / "empty.pem")
    with pytest.raises(ValueError, match="has no TLS"):
        mcp.connect("http://localhost/mcp", ca=tmp_path / "empty.pem")


def private_name() -> tuple[str, str]:
    """Return the name of this machine and its address, if that is in a private network."""
    name = socket.gethostname()
    with contextlib.suppress(OSError):
        for *_, address in socket.getaddrinfo(name, 0, type=socket.SOCK_STREAM, family=socket.AF_INET):
            found = ipaddress.ip_address(address[0])
            if found.is_private and not found.is_loopback:
                return name, str(found)
    pytest.skip("this machine has no name with an address in a private network")


async def test_a_name_that_leads_to_a_private_network_is_refused_unless_that_is_allowed(authority: Authority) -> None:
    name, address = private_name()
    certificate = authority.certificate(f"DNS:{name}")
    async with served(certificate, address) as server:
        with pytest.raises(errors.McpConnectionError, match="has no address that is allowed"):
            await server.client(name, ca=authority.file).connect()
        refused = list(server.handshakes)
        with contextlib.suppress(errors.McpConnectionError):  # The server behind accepts names of this machine only.
            await server.client(name, ca=authority.file, allow_private_addresses=True).connect()

    assert refused == []
    assert server.handshakes
