"""A skipped test is a failed one: a client that is not there must not look like a client that works."""

import pytest

pytest_plugins = ["pytester"]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped, which counts as failed: {report.longrepr}"
    return report
