"""A wait over TLS is told and given up like any other, also when a part of what is awaited has come."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest
from kit.certificates import Certificate, write_certificate

from shared import patient_link
from shared.patient_link import PatientLink


class EnoughError(Exception):
    pass


class Impatient:
    """Gives up at the third step."""

    def __init__(self) -> None:
        self.told: list[float] = []

    def waits(self, seconds: float) -> None:
        self.told.append(seconds)
        if len(self.told) == 3:
            raise EnoughError

    def moved(self, seconds: float) -> None:
        pass


def serve(link: socket.socket, certificate: Certificate, say: bytes, share: float) -> None:
    """Greet as a server of TLS, and send so much of the record that holds these words."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    layer = context.wrap_bio(incoming, outgoing, server_side=True)
    while True:
        try:
            layer.do_handshake()
            break
        except ssl.SSLWantReadError:
            link.sendall(outgoing.read())
            incoming.write(link.recv(1 << 16))
    link.sendall(outgoing.read())
    layer.write(say)
    record = outgoing.read()
    link.sendall(record[: int(len(record) * share)])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_record_that_does_not_come(share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_link, "STEP_SECONDS", 0.1)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server = threading.Thread(target=serve, args=(theirs, write_certificate(tmp_path), b"x" * 1000, share))
        server.start()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        waiter, buffer = Impatient(), bytearray(1000)
        with context.wrap_socket(ours) as link:
            patient = PatientLink(link, waiter)
            if share == 1.0:
                assert (patient.readinto(buffer), buffer) == (1000, b"x" * 1000)
            else:
                with pytest.raises(EnoughError):
                    patient.readinto(buffer)
                assert len(waiter.told) == 3
        server.join(5)


def test_a_peer_that_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_link, "STEP_SECONDS", 0.1)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server = threading.Thread(target=serve, args=(theirs, write_certificate(tmp_path), b"x", 1.0))
        server.start()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(ours) as link:
            server.join(5)
            with pytest.raises(EnoughError):
                PatientLink(link, Impatient()).send(bytes(8 << 20))
