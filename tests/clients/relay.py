"""A transparent TCP relay between an unmodified client and the bridge, which counts the client's calls."""

import re
import socket
import threading

CREATE = re.compile(rb"POST \S*/responses HTTP/1\.1\r\n")
UPGRADE = re.compile(rb"GET \S*/responses HTTP/1\.1\r\n")


class CountingRelay:
    """Passes bytes on as they came. Counts the client's create calls, and its requests for a WebSocket."""

    def __init__(self, port: int):
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sent: list[bytearray] = []
        self.root = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.base_url = f"{self.root}/v1"
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def creates(self) -> int:
        return self._count(CREATE)

    @property
    def upgrades(self) -> int:
        return self._count(UPGRADE)

    def _count(self, request: re.Pattern[bytes]) -> int:
        return sum(len(request.findall(bytes(sent))) for sent in self._sent)

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                bridge = socket.create_connection(self._target, 5)
            except OSError:
                client.close()
                continue
            bridge.settimeout(None)
            sent = bytearray()
            self._sent.append(sent)
            for source, sink, record in ((client, bridge, sent), (bridge, client, None)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=_pump, args=(source, sink, record), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket, record: bytearray | None) -> None:
    try:
        while data := source.recv(65536):
            if record is not None:
                record += data
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        # One side is gone; the other must learn of it at once, as it would without a relay.
        for end in (source, sink):
            end.close()
