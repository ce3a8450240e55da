"""The bridge before the foreign upstream, one pair for each test."""

import pytest

pytest.register_assert_rewrite("caller")

from bridge import Bridge  # noqa: E402
from upstream import ForeignUpstream  # noqa: E402


@pytest.fixture
def upstream():
    upstream = ForeignUpstream()
    yield upstream
    upstream.stop()
    assert not upstream.failures, upstream.failures
    assert not upstream.answers, "an answer that nobody asked for is left"


@pytest.fixture
def over_websocket(upstream, tmp_path):
    bridge = Bridge(tmp_path, upstream.base_url, transport="auto")
    yield bridge
    bridge.stop()


@pytest.fixture
def over_http(upstream, tmp_path):
    bridge = Bridge(tmp_path, upstream.base_url, transport="http")
    yield bridge
    bridge.stop()
