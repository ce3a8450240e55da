"""An account behind a real proxy: both transports go through it, and nothing goes around it."""

import re
import socket
import ssl
import threading

import pytest
import trustme

from caller import assert_relayed, stream
from payloads import delta, encode, turn
from proxies import SECRET, SPELT, USER, ProxiedBridge, Proxy
from upstream import Body, ForeignUpstream, Message

TURN = turn([encode(delta("through a proxy"))])
CREDENTIAL = f"{USER}:{SPELT}@"

KINDS = [("http", "http"), ("socks5", "socks5"), ("socks5", "socks5h")]


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(params=["tls", "plain"])
def far_upstream(request, authority, tmp_path):
    """An upstream, and the file of its authority where it has one."""
    context, ca_file = None, None
    if request.param == "tls":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        ca_file = tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(ca_file)
    upstream = ForeignUpstream(context)
    yield upstream, ca_file
    upstream.stop()
    assert not upstream.failures, upstream.failures


@pytest.fixture
def started():
    """Stops whatever a test has started."""
    programs = []
    yield lambda program: programs.append(program) or program
    for program in programs:
        program.stop()


def body() -> Body:
    return Body(b"".join(b"data: " + payload + b"\n\n" for payload in TURN))


# [UP-21] Both transports, with and without a password, to an upstream with TLS of its own and to a plain one: every connection
# that the upstream sees is the proxy's.
@pytest.mark.parametrize("password", [False, True], ids=["open", "password"])
@pytest.mark.parametrize("kind, scheme", KINDS, ids=[scheme for _, scheme in KINDS])
def test_both_transports_go_through(kind, scheme, password, far_upstream, started, tmp_path):
    upstream, ca_file = far_upstream
    proxy = started(Proxy(kind, password))
    address = proxy.address(scheme, CREDENTIAL if password else "")
    # To a plain upstream an HTTP proxy makes no tunnel: see below.
    tunnel = ca_file is not None or kind == "socks5"
    for transport in ["auto", "http"] if tunnel else ["http"]:
        bridge = started(ProxiedBridge(tmp_path / transport, upstream.base_url, transport, address, ca_file)).listens()
        seen = len(upstream.received)
        for _ in range(2):
            websocket = transport == "auto"
            upstream.answers.append([Message(payload) for payload in TURN] if websocket else body())
            assert_relayed(stream(bridge, session="s"), TURN)
            assert upstream.received[-1].transport == ("websocket" if websocket else "http")
        assert len(upstream.received) == seen + 2
        assert SECRET not in bridge.said()
        bridge.stop()
    assert upstream.peers and all(proxy.module in peer for peer in upstream.peers), upstream.peers
    # The proxy's own log says so as well.
    target = upstream.base_url.split("/")[2]
    proxy.program.wait_for(re.escape(target), within=10)


# [UP-21] The way to the proxy is under TLS too: the provider's authority is trusted for both, and without it the proxy is not.
@pytest.mark.parametrize("far_upstream", ["tls"], indirect=True)
def test_a_proxy_with_tls(far_upstream, authority, started, tmp_path):
    upstream, ca_file = far_upstream
    certificate = authority.issue_cert("127.0.0.1")
    key, chain = tmp_path / "key.pem", tmp_path / "chain.pem"
    certificate.private_key_pem.write_to_path(key)
    certificate.cert_chain_pems[0].write_to_path(chain)
    proxy = started(Proxy("http", True, (key, chain)))
    address = proxy.address("https", CREDENTIAL)
    for transport in ["auto", "http"]:
        bridge = started(ProxiedBridge(tmp_path / transport, upstream.base_url, transport, address, ca_file)).listens()
        upstream.answers.append([Message(payload) for payload in TURN] if transport == "auto" else body())
        assert_relayed(stream(bridge, session="s"), TURN)
    assert upstream.peers and all(proxy.module in peer for peer in upstream.peers), upstream.peers
    seen = len(upstream.peers)
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    bridge = started(ProxiedBridge(tmp_path / "other", upstream.base_url, "auto", address, other)).listens()
    answer = bridge.post("s")
    assert answer.status_code == 502 and answer.json()["error"]["code"] == "bridge_proxy_failed", answer.text
    assert len(upstream.peers) == seen


# [UP-21] A plain upstream behind an HTTP proxy. This one answers the upgrade with 101 and then loses the frames: it is never asked
# for one, and each turn goes by direct HTTP, through the proxy.
def test_a_plain_upstream_has_no_tunnel(started, tmp_path):
    upstream = ForeignUpstream()
    proxy = started(Proxy("http", False))
    bridge = started(ProxiedBridge(tmp_path / "auto", upstream.base_url, "auto", proxy.address("http"), None)).listens()
    upstream.answers.append(body())
    assert bridge.post("s").status_code == 200
    assert all(proxy.module in peer for peer in upstream.peers), upstream.peers
    assert [received.transport for received in upstream.received] == ["http"]
    upstream.stop()
    assert not upstream.failures, upstream.failures


# [UP-21] The proxy goes away under a running bridge: nothing reaches the upstream directly, on either transport, and the client
# is told what is wrong.
@pytest.mark.parametrize("kind, scheme", KINDS, ids=[scheme for _, scheme in KINDS])
def test_nothing_goes_around_a_proxy_that_is_down(kind, scheme, far_upstream, started, tmp_path):
    upstream, ca_file = far_upstream
    proxy = started(Proxy(kind, True))
    bridges = [
        started(ProxiedBridge(tmp_path / name, upstream.base_url, name, proxy.address(scheme, CREDENTIAL), ca_file)).listens()
        for name in ["auto", "http"]
    ]
    proxy.stop()
    for bridge in bridges:
        for session in ["a", "b", "a"]:
            answer = bridge.post(session)
            assert answer.status_code == 502, answer.text
            assert answer.json()["error"]["code"] == "bridge_proxy_failed"
            assert "retry-after" in answer.headers
            assert SECRET not in answer.text
        assert SECRET not in bridge.said() and USER not in bridge.said()
    assert upstream.peers == []


# [UP-21] A wrong password is the proxy's refusal: nothing reaches the upstream.
@pytest.mark.parametrize("kind, scheme", KINDS, ids=[scheme for _, scheme in KINDS])
def test_a_wrong_password(kind, scheme, far_upstream, started, tmp_path):
    upstream, ca_file = far_upstream
    proxy = started(Proxy(kind, True))
    wrong = proxy.address(scheme, f"{USER}:wrong-{SPELT}@")
    for transport in ["auto", "http"]:
        bridge = started(ProxiedBridge(tmp_path / transport, upstream.base_url, transport, wrong, ca_file)).listens()
        answer = bridge.post("s")
        assert answer.status_code == 502, answer.text
        assert answer.json()["error"]["code"] == "bridge_proxy_failed"
        assert SECRET not in answer.text + bridge.said()
    assert upstream.peers == []


# [CFG-20] `serve` does not start before a proxy that does not answer, and says where it is configured; nothing of its password.
def test_serve_refuses_a_proxy_that_does_not_answer(started, tmp_path):
    proxy = started(Proxy("http", True))
    proxy.stop()
    address = proxy.address("http", CREDENTIAL)
    bridge = started(ProxiedBridge(tmp_path / "down", "https://127.0.0.1:9/v1", "auto", address, None))
    assert bridge.program.finish(within=20) == 1
    said = bridge.said()
    assert f"bridge.toml:13:1: providers.up.accounts[0].proxy: the proxy {proxy.address('http')} does not answer" in said, said
    assert "start it, or correct its address" in said
    assert SECRET not in said and USER not in said


# [CFG-20] Asking whether the proxy answers is a connection, and nothing more.
def test_nothing_is_sent_to_find_out(started, tmp_path):
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hear():
            connection, _ = listener.accept()
            with connection:
                heard.append(connection.recv(1024))

        thread = threading.Thread(target=hear)
        thread.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        started(ProxiedBridge(tmp_path / "asked", "http://127.0.0.1:9/v1", "auto", address, None)).listens()
        thread.join(20)
    assert heard == [b""]
