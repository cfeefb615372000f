"""Certificates of authorities that are made for a test, by the program `openssl`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


class Authority:
    """An authority that signs certificates of servers.

    Attributes:
        file: Its certificate, as a PEM file.
    """

    def __init__(self, folder: Path, name: str) -> None:
        if not shutil.which("openssl"):
            pytest.skip("the tests of TLS did NOT run: there is no `openssl`")
        self.folder = folder
        self.file = folder / f"{name}.crt"
        self._key = folder / f"{name}.key"
        options = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
        constraints = ["-addext", "basicConstraints=critical,CA:TRUE"]
        place = ["-keyout", str(self._key), "-out", str(self.file)]
        _openssl("req", "-x509", *options, "-subj", f"/CN={name}", *constraints, *place)

    def certificate(self, *names: str) -> tuple[Path, Path]:
        """Sign a certificate of a server for names such as `DNS:localhost`; return its file and that of its key."""
        stem = self.folder / names[0].replace(":", "-")
        request, key, signed = stem.with_suffix(".csr"), stem.with_suffix(".key"), stem.with_suffix(".crt")
        extensions = stem.with_suffix(".ext")
        extensions.write_text(f"subjectAltName={','.join(names)}\nextendedKeyUsage=serverAuth\n")
        options = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=server"]
        _openssl("req", *options, "-keyout", str(key), "-out", str(request))
        authority = ["-CA", str(self.file), "-CAkey", str(self._key), "-CAcreateserial"]
        place = ["-extfile", str(extensions), "-out", str(signed)]
        _openssl("x509", "-req", "-in", str(request), "-days", "1", *authority, *place)
        return signed, key


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)
