"""What upstream does wrong once, in the words of `simulate`; the same for every client."""

import pytest

# Before `response.created`: the client gets a status, and every client tries again.
before_created = pytest.mark.parametrize("end", ["sim:fin(times=1)", "sim:close(code=1011,times=1)"])
# After it: streams end in `response.failed`.
in_mid_stream = pytest.mark.parametrize("end", ["sim:reset(after=3,times=1)", "sim:close(code=1012,after=3,times=1)"])

RATE_LIMIT = "sim:error(status=429,code=rate_limit_exceeded,retry_after=1,shape=headers_top,times=1)"
TOO_LONG = "sim:error(status=400,code=context_length_exceeded,param=input)"
# 100 s of deltas.
ENDLESS = "sim:text(n=1000,delay=100ms)"
