"""A server that is not the one it says it is: it speaks MySQL's protocol as far as a login, and wants the password."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from types import TracebackType

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from kit.certificates import Certificate

#: PROTOCOL_41, SSL, SECURE_CONNECTION, PLUGIN_AUTH, and the rest that every server has
CAPABILITIES, SSL = 0x000FFFDF, 0x0800
SALT = b"12345678abcdefghijkl"


class Rogue:
    """Listens on this machine, but not at an address that a client knows for its own."""

    #: Linux connects this to the machine itself
    host = "0.0.0.0"

    def __init__(
        self, plugin: str, *, greets_with: str = "mysql_native_password", tls: Certificate | None = None
    ) -> None:
        """`plugin` is how it would have clients log in, `greets_with` what it names first; it encrypts with `tls`."""
        self._plugin, self._greets_with, self._tls = plugin.encode(), greets_with.encode(), tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        #: all that clients sent, and what it could decrypt of it
        self.heard = bytearray()
        self._link = self._listener
        self._number = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        while True:
            try:
                self._link, _ = self._listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError, EOFError):
                self._link.settimeout(5)
                self._number = 0
                self._greet()
                self._ask()
            self._link.close()

    def _greet(self) -> None:
        flags = CAPABILITIES if self._tls else CAPABILITIES & ~SSL
        self._send(
            b"\x0a8.0.46\0" + struct.pack("<I", 7) + SALT[:8] + b"\0" + struct.pack("<H", flags & 0xFFFF)
            + b"\xff\2\0" + struct.pack("<H", flags >> 16) + bytes([len(SALT) + 1]) + bytes(10) + SALT[8:] + b"\0"
            + self._greets_with + b"\0"
        )  # fmt: skip
        answer = self._receive()
        if self._tls and struct.unpack_from("<I", answer)[0] & SSL:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*self._tls)
            self._link = context.wrap_socket(self._link, server_side=True)
            self._receive()

    def _ask(self) -> None:
        """Ask for the password by every word that the plugin knows."""
        if self._plugin == b"dialog":
            self._send(b"\xfedialog\0\2Password: ")
        else:
            self._send(b"\xfe" + self._plugin + b"\0" + SALT + b"\0")
        self._receive()
        pem = self._key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        if self._plugin == b"caching_sha2_password":
            self._send(b"\1\4")
            if self._receive() != b"\2":
                return
        self._send(b"\1" + pem)
        secret = self._receive()
        with contextlib.suppress(ValueError):
            form = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)
            masked = self._key.decrypt(secret, form)
            self.heard += bytes(byte ^ SALT[at % len(SALT)] for at, byte in enumerate(masked))

    def _send(self, payload: bytes) -> None:
        self._link.sendall(len(payload).to_bytes(3, "little") + bytes([self._number]) + payload)
        self._number += 2

    def _receive(self) -> bytes:
        head = self._exactly(4)
        self._number = head[3] + 1
        payload = self._exactly(int.from_bytes(head[:3], "little"))
        self.heard += payload
        return payload

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._link.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def __enter__(self) -> Rogue:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # closing alone does not wake the one who waits in accept
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)


@contextlib.contextmanager
def server_that_says(words: bytes) -> Iterator[int]:
    """The port of a server that accepts every connection, says this, and then nothing."""
    with server_that_drips(b"", 0.0, at_once=words) as port:
        yield port


@contextlib.contextmanager
def server_that_drips(words: bytes, seconds: float, *, at_once: bytes = b"") -> Iterator[int]:
    """The port of a server that says `words` to every client byte by byte, each after `seconds`.

    What comes before them it says `at_once`.
    """
    links: list[socket.socket] = []

    def drip(link: socket.socket) -> None:
        with contextlib.suppress(OSError):
            link.sendall(at_once)
            for number in range(len(words)):
                time.sleep(seconds)
                link.sendall(words[number : number + 1])

    def accept() -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            links.append(link)
            threading.Thread(target=drip, args=(link,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)
    for link in links:
        link.close()
