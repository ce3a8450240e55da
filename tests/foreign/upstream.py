"""An upstream in Python that shares no code with the bridge. Both transports, on one port.

Every byte's place is in the test's hands: WebSocket messages go out in the fragments asked for, HTTP bodies in the
chunks asked for. The WebSocket protocol itself is the `websockets` library's (its sans-I/O layer).
"""

import asyncio
import ssl
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from websockets.frames import Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

from owner import owner_of

# Seconds that the bridge has for the answer to a ping, in the middle of a message too.
PONG_WITHIN = 5


@dataclass(frozen=True)
class Message:
    """One WebSocket text message: a fragment ends at every offset of `cuts` (bytes).

    With `pings` an unsolicited pong and a ping follow each fragment but the last, and the next one waits for the answer.
    """

    payload: bytes
    cuts: Sequence[int] = ()
    pings: bool = False

    def fragments(self) -> list[bytes]:
        edges = [0, *self.cuts, len(self.payload)]
        return [self.payload[start:end] for start, end in zip(edges, edges[1:])]


@dataclass(frozen=True)
class Body:
    """One HTTP answer: an event stream whose chunks are at most `chunk` bytes long, each written by itself."""

    content: bytes
    chunk: int = 1 << 20


@dataclass
class Received:
    """What came from the bridge: one create."""

    transport: str
    headers: dict[str, str]
    body: bytes


class ForeignUpstream:
    """Answers each create with the next one of `answers`."""

    def __init__(self, tls: ssl.SSLContext | None = None):
        self._tls = tls
        # The program at the other end of each connection, as its command line.
        self.peers: list[str] = []
        self.answers: deque[list[Message] | Body] = deque()
        self.received: list[Received] = []
        self.failures: list[str] = []
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        assert started.wait(10)

    @property
    def base_url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._port}/v1"

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._connection, "127.0.0.1", 0, ssl=self._tls)
        )
        self._port = server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()
        rest = asyncio.all_tasks(self._loop)
        for task in rest:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.peers.append(owner_of(writer.get_extra_info("peername"), writer.get_extra_info("sockname")))
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if head.startswith(b"GET "):
                    await self._websocket(head, reader, writer)
                    return
                await self._http(head, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the bridge closed, as it may at any time
        except Exception as error:  # noqa: BLE001 - reported by the fixture, in the test's own thread
            self.failures.append(repr(error))
        finally:
            writer.close()

    async def _http(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        headers = _headers(head)
        body = await reader.readexactly(int(headers["content-length"])) if "content-length" in headers else (
            await _chunked(reader)
        )
        self.received.append(Received("http", headers, body))
        answer = self.answers.popleft()
        assert isinstance(answer, Body), "the bridge used HTTP where the test expects a WebSocket"
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for start in range(0, len(answer.content), answer.chunk):
            piece = answer.content[start : start + answer.chunk]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _websocket(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = ServerProtocol(max_size=None)
        headers = _headers(head)

        async def flush() -> None:
            for data in protocol.data_to_send():
                if data:
                    writer.write(data)
                elif writer.can_write_eof():  # TLS has no half-closed connections
                    writer.write_eof()
            await writer.drain()

        protocol.receive_data(head)
        (request,) = protocol.events_received()
        assert isinstance(request, Request)
        protocol.send_response(protocol.accept(request))
        await flush()
        turn: asyncio.Task | None = None
        text = bytearray()
        pongs: asyncio.Queue[bytes] = asyncio.Queue()
        while data := await reader.read(65536):
            protocol.receive_data(data)
            for frame in protocol.events_received():
                if frame.opcode in (Opcode.TEXT, Opcode.CONT):
                    text += frame.data
                    if frame.fin:
                        self.received.append(Received("websocket", headers, bytes(text)))
                        text.clear()
                        turn = asyncio.create_task(self._turn(protocol, flush, pongs))
                        turn.add_done_callback(self._judge)
                elif frame.opcode is Opcode.PONG:
                    pongs.put_nowait(bytes(frame.data))
            await flush()
        if turn:
            turn.cancel()

    async def _turn(self, protocol: ServerProtocol, flush, pongs: asyncio.Queue[bytes]) -> None:
        answer = self.answers.popleft()
        assert not isinstance(answer, Body), "the bridge used a WebSocket where the test expects HTTP"
        for number, message in enumerate(answer):
            *parts, last = message.fragments()
            for place, part in enumerate(parts):
                (protocol.send_continuation if place else protocol.send_text)(part, fin=False)
                if message.pings:
                    ping = b"%d.%d" % (number, place)
                    protocol.send_pong(b"unsolicited")
                    protocol.send_ping(ping)
                    await flush()
                    assert await asyncio.wait_for(pongs.get(), PONG_WITHIN) == ping
                await flush()
            protocol.send_continuation(last, fin=True) if parts else protocol.send_text(last)
            await flush()

    def _judge(self, turn: asyncio.Task) -> None:
        if not turn.cancelled() and (error := turn.exception()) and not isinstance(error, ConnectionError):
            self.failures.append(repr(error))


def _headers(head: bytes) -> dict[str, str]:
    lines = head.decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}


async def _chunked(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while size := int((await reader.readline()).split(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return bytes(body)
