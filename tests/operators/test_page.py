"""The status page in Debian's Chromium, as operators use it: by mouse, by keyboard, by screen reader, without scripts."""

import contextlib
import http.server
import signal
import socket
import threading
import time

import httpx
import pytest

from browser import Browser, Driver
from page_stage import COOKIE, CREDENTIAL, PICTURES, PROMPT, TOKEN, Stage, proof, sign_in, staged
from places import NODE_MODULES

AXE = NODE_MODULES / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def driver():
    driver = Driver()
    yield driver
    driver.stop()


@pytest.fixture
def stage(tmp_path):
    with staged(tmp_path) as stage:
        yield stage


@pytest.fixture
def browser(driver):
    with driver.browser() as browser:
        yield browser


# [PAGE-3] a wrong token is told so, the right one opens the page; the cookie says nothing, and no script reads it.
def test_signing_in_and_out(stage, browser):
    browser.open(stage.ui)
    assert browser.url == stage.ui + "/login"
    browser.find("#token").type("not the token")
    browser.find("main button").follow()
    assert "That is not the admin token" in browser.find("#wrong").text
    assert browser.find("#token").attribute("aria-invalid") == "true"
    assert browser.find("#token").attribute("autocomplete") == "current-password"
    assert browser.cookies() == []
    browser.find("#token").type(TOKEN + "\ue007")
    browser.wait(lambda: browser.url == stage.ui, what="the overview")
    assert [event["by"] for event in stage.events("operator_action")] == ["page"]
    assert stage.events("operator_action")[0]["reason"] == "signed_in"
    [cookie] = browser.cookies()
    assert cookie["name"] == COOKIE and len(cookie["value"]) == 64
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and cookie["path"] == "/admin"
    # There is no TLS here; a browser that came by https says so.
    assert not cookie["secure"]
    assert browser.run("return document.cookie") == ""
    browser.find("header form button").follow()
    browser.wait(lambda: browser.url == stage.ui + "/login", what="the form")
    assert browser.cookies() == []
    after = httpx.get(stage.ui, cookies={COOKIE: cookie["value"]}, timeout=10)
    assert after.status_code == 401 and "Your session is over" in after.text


# [PAGE-3] [PAGE-7] behind a proxy that ends TLS the cookie travels by https alone.
def test_a_cookie_of_https_is_secure(stage):
    host = stage.root.removeprefix("http://")
    answer = httpx.post(f"{stage.ui}/login", data={"token": TOKEN}, headers={"origin": f"https://{host}"}, timeout=10)
    assert answer.status_code == 303
    assert answer.headers["set-cookie"].endswith("; Path=/admin; Max-Age=43200; HttpOnly; SameSite=Strict; Secure")


# [PAGE-5] after ten wrong tokens there is patience no more, with the API's together; the right one is right at any time.
def test_guessing_is_slowed_down(stage, browser):
    for _ in range(6):
        assert httpx.get(f"{stage.root}/admin/status", headers={"authorization": "Bearer x"}, timeout=10).status_code == 401
    said = []
    for _ in range(8):
        answer = httpx.post(f"{stage.ui}/login", data={"token": "wrong"}, headers={"origin": stage.root}, timeout=10)
        said.append(answer.status_code)
        if answer.status_code == 429:
            assert answer.headers["retry-after"] == "1" and "too many wrong ones" in answer.text
    assert said[0] == 401 and said.count(429) >= 2, said
    sign_in(browser, stage)


# [PAGE-13] [PAGE-15] clearing a key really clears it: its next turn uses a session; and the event says who did it.
def test_clearing_a_key(stage, browser):
    stage.silence("sick", "other")
    sign_in(browser, stage)
    assert len(browser.find_all("#quarantine tbody tr")) == 2
    key = stage.events("quarantine_opened")[0]["key"]
    assert "▲ on HTTP" in browser.find(f"#q-{key}").text
    browser.find(f"#clear-{key}").click()
    browser.wait(lambda: browser.find_all(".notice"), what="the notice")
    assert browser.find(".notice").text == f"✓ Key {key} cleared. Its next turn uses a session again."
    assert key not in stage.quarantined() and len(stage.quarantined()) == 1
    action = stage.events("operator_action")[-1]
    assert (action["reason"], action["by"], action["key"]) == ("quarantine_cleared", "page", key)
    assert stage.turn("sim:text(n=3)", "sick").status_code == 200
    assert stage.turn("sim:text(n=3)", "other").status_code == 200
    assert [create["transport"] for create in stage.simulator.creates()] == ["websocket", "websocket", "websocket", "http"]
    # The notice is told once, and an action keeps the filter.
    browser.find("#kind").type("quarantine*")
    browser.find("#filter button").click()
    browser.wait(lambda: "kind=quarantine" in browser.url, what="the filter")
    assert not browser.find_all(".notice")
    browser.find("#quarantine tbody button").click()
    browser.wait(lambda: browser.find_all(".notice"), what="the notice")
    assert browser.url.endswith("/admin/ui?kind=quarantine*") and stage.quarantined() == []


# [PAGE-14] clearing all asks first, and going back changes nothing.
def test_clearing_all_asks_first(stage, browser):
    stage.silence("a", "b")
    sign_in(browser, stage)
    browser.find("#clear-all").click()
    browser.wait(lambda: browser.url.endswith("/quarantine/clear-all"), what="the question")
    assert browser.find("h1").text == "Clear all quarantined keys?"
    browser.find("main a.button").click()
    browser.wait(lambda: browser.url == stage.ui, what="the overview")
    assert len(stage.quarantined()) == 2
    browser.find("#clear-all").click()
    browser.wait(lambda: browser.find_all(".danger"), what="the question")
    browser.find(".danger").click()
    browser.wait(lambda: browser.find_all(".notice"), what="the notice")
    assert browser.find(".notice").text.startswith("✓ 2 keys cleared")
    assert stage.quarantined() == []
    assert "No key is in quarantine" in browser.find("#quarantine").text
    action = stage.events("operator_action")[-1]
    assert (action["reason"], action["by"], action["count"]) == ("quarantine_cleared", "page", 2)


# [PAGE-13] a sick transport is told of, and reset.
def test_resetting_a_transport(stage, browser):
    sign_in(browser, stage)
    sick = stage.sicken()
    browser.wait(lambda: "sick: all by HTTP" in browser.find("#accounts").text, what="the sick transport, live")
    browser.find(f"[id='reset-openai/{sick}']").click()
    browser.wait(lambda: browser.find_all(".notice"), what="the notice")
    assert f"Transport of openai/{sick} reset" in browser.find(".notice").text
    assert "sick" not in browser.find("#accounts").text
    action = stage.events("operator_action")[-1]
    assert (action["reason"], action["by"], action["account"]) == ("breaker_reset", "page", sick)


# [PAGE-16] what happens arrives without a reload: events, panels, the drain; pausing stops it, and focus stays where it is.
def test_the_page_is_live(stage, browser):
    sign_in(browser, stage)
    browser.wait(lambda: browser.find("#live").text == "Live", what="the stream")
    browser.run("document.body.dataset.same = 'yes'; document.getElementById('kind').focus()")
    stage.silence("sick")
    browser.wait(lambda: "response_created_timeout" in browser.find("#events").text, what="the event")
    browser.wait(lambda: browser.find_all("#quarantine tbody tr"), what="the key")
    browser.wait(lambda: "1 was silent" in browser.find("#created").text, what="the histogram")
    latest = [row.text for row in browser.find_all("#events li")]
    assert any("▲ warn" in row for row in latest)
    numbers = [int(row.attribute("id")[2:]) for row in browser.find_all("#events li")]
    assert numbers == sorted(numbers, reverse=True), "latest first"
    stage.api("PUT", "/drain", json={"draining": True})
    browser.wait(lambda: "▲ Draining" in browser.find("#standing").text, what="the drain")
    stage.api("PUT", "/drain", json={"draining": False})
    browser.wait(lambda: "✓ Serving" in browser.find("#standing").text, what="the end of the drain")
    assert browser.run("return document.body.dataset.same") == "yes", "the page was loaded anew"
    assert browser.focused.attribute("id") == "kind", "the focus was taken away"
    # A screen reader hears of all this in a sentence now and then, not row by row.
    assert browser.find("#events").attribute("aria-live") is None
    assert browser.find("#news").role == "status"
    browser.wait(lambda: "new event" in browser.run("return document.getElementById('news').textContent"), what="the news")
    browser.find("#pause").click()
    assert browser.find("#pause").attribute("aria-pressed") == "true" and browser.find("#live").text == "Paused"
    before = browser.find("#events").text
    stage.turn("sim:text(n=1)", "well")
    time.sleep(3)
    assert browser.find("#events").text == before
    browser.find("#pause").click()
    browser.wait(lambda: browser.find("#events").text != before, what="what came meanwhile")
    assert "turn_finished" in browser.find("#events li").text
    assert browser.complaints() == []


# [PAGE-16] focus on a button of a row outlives the rows around it.
def test_focus_outlives_an_update(stage, browser):
    stage.silence("first", "second")
    sign_in(browser, stage)
    keys = [event["key"] for event in stage.events("quarantine_opened")]
    browser.run("document.getElementById(arguments[0]).focus()", f"clear-{keys[1]}")
    assert stage.api("DELETE", f"/quarantine/{keys[0]}").status_code == 200
    browser.wait(lambda: not browser.find_all(f"#q-{keys[0]}"), what="the row's end")
    stage.silence("third")
    browser.wait(lambda: len(browser.find_all("#quarantine tbody tr")) == 2, what="another row")
    assert browser.focused.attribute("id") == f"clear-{keys[1]}"


# [PAGE-12] by account and by kind, in a form that needs no script.
def test_filters(stage, browser):
    stage.silence("sick")
    stage.turn("sim:text(n=1)", "sick")
    at = stage.events("quarantine_opened")[0]["account"]
    sign_in(browser, stage)
    browser.find("#kind").type("quarantine*")
    browser.find("#filter button").follow()
    browser.wait(lambda: "kind=quarantine" in browser.url, what="the filter")
    kinds = {kind.text for kind in browser.find_all("#events .kind")}
    assert kinds == {"quarantine_opened", "quarantine_http_fallback"}
    assert browser.find("#kind").attribute("value") == "quarantine*"
    # What comes live goes through the same filter.
    browser.wait(lambda: browser.find("#live").text == "Live", what="the stream")
    stage.turn("sim:text(n=1)", "sick")
    browser.wait(lambda: len(browser.find_all("#events li")) == 3, what="the live event")
    assert {kind.text for kind in browser.find_all("#events .kind")} == kinds
    other = "spare" if at == "main" else "main"
    browser.find("#account").choose(f"openai/{other}")
    browser.find("#filter button").follow()
    browser.wait(lambda: f"account=openai%2F{other}" in browser.url, what="the account")
    assert "None of the latest 512 events matches the filter" in browser.find("#events-card").text
    assert [row.text for row in browser.find_all("#accounts tbody th")] == [f"openai/{other}"]
    browser.find("#filter a").follow()
    browser.wait(lambda: browser.url == stage.ui, what="everything")
    assert len(browser.find_all("#accounts tbody tr")) == 2


# [PAGE-8] with scripts switched off all of it works: signing in, looking, filtering, clearing, signing out.
def test_without_javascript(stage, driver):
    stage.silence("sick", "other")
    with driver.browser(javascript=False) as browser:
        sign_in(browser, stage)
        assert browser.find("#live").text == "As it was when loaded"
        assert not browser.find_all("#pause:not([hidden])")
        assert len(browser.find_all("#quarantine tbody tr")) == 2
        browser.find("#quarantine tbody button").follow()
        browser.wait(lambda: browser.find_all(".notice"), what="the notice")
        assert len(stage.quarantined()) == 1
        browser.find("#kind").type("operator_action")
        browser.find("#filter button").follow()
        assert {kind.text for kind in browser.find_all("#events .kind")} == {"operator_action"}
        stage.silence("third")
        browser.find("header a.button").follow()
        assert len(browser.find_all("#quarantine tbody tr")) == 2 and "kind=operator_action" in browser.url
        browser.find("#clear-all").follow()
        browser.find(".danger").follow()
        assert stage.quarantined() == []
        browser.find("summary").click()
        assert "Turns by the time to their response.created" in browser.find("#created table").text
        browser.find("header form button").follow()
        assert browser.url == stage.ui + "/login"
        browser.shoot(PICTURES / "login-no-script.png")


# [PAGE-17] the keyboard alone does it: past the head by the skip link, to every control in order, and out again.
def test_keyboard_only(stage, browser):
    stage.silence("sick")
    browser.open(stage.ui)
    assert browser.focused.attribute("id") == "token"
    browser.press(TOKEN, "enter")
    browser.wait(lambda: browser.find_all("#standing"), what="the overview")
    browser.press("tab")
    assert browser.focused.text == "Skip to content"
    browser.press("enter")
    assert browser.focused.tag == "main"
    browser.press("tab")
    assert browser.focused.attribute("id") == "account", "the skip link led somewhere else"
    browser.open(stage.ui)
    reached, seen = [], set()
    for _ in range(60):
        browser.press("tab")
        at = browser.run(
            "const e = document.activeElement, s = getComputedStyle(e);"
            "return [e.id || e.textContent.trim() || e.tagName, s.outlineStyle, parseFloat(s.outlineWidth)]"
        )
        if at[0] in seen or browser.focused.tag == "body":
            break
        seen.add(at[0])
        reached.append(at[0])
        assert at[1] != "none" and at[2] >= 2, f"focus on {at[0]} cannot be seen"
    key = stage.quarantined()[0]
    wanted = ["Skip to content", "pause", "Refresh", "Sign out", "account", "kind", "Filter", f"clear-{key}", "clear-all", "As a table"]
    assert [name for name in reached if name in wanted] == wanted, reached
    browser.run("document.getElementById('filter').querySelector('button').focus()")
    while browser.focused.attribute("id") != f"clear-{key}":
        browser.press("tab")
    browser.press("shift+tab", "tab", "space")
    browser.wait(lambda: browser.find_all(".notice"), what="the notice")
    assert stage.quarantined() == []


# [PAGE-18] a screen reader finds landmarks, headings in order, captioned tables, named controls, and words beside colours.
def test_screen_reader(stage, browser):
    stage.silence("sick")
    sign_in(browser, stage)
    roles = {css: browser.find(css).role for css in ["header", "nav", "main", "#filter", "#quarantine"]}
    assert roles == {"header": "banner", "nav": "navigation", "main": "main", "#filter": "search", "#quarantine": "region"}
    levels = browser.run("return [...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1 and all(b - a <= 1 for a, b in zip(levels, levels[1:]))
    tables = "return [...document.querySelectorAll('table')].every(t => t.caption && [...t.querySelectorAll('th')].every(h => h.scope))"
    assert browser.run(tables)
    assert browser.find("html").attribute("lang") == "en"
    key = stage.quarantined()[0]
    assert browser.find(f"#clear-{key}").label == f"Clear key {key}"
    chart = browser.find("svg.chart")
    assert chart.role in ("img", "image") and "1 was silent up to the deadline of 1 s" in chart.label
    assert browser.find("#account").label == "Account" and browser.find("#kind").label == "Kind of event"


class Evil(http.server.BaseHTTPRequestHandler):
    """Another site's page that sends a form to the bridge as soon as it is opened."""

    target = ""
    fields = ""

    def do_GET(self):
        page = f'<form method=post action="{self.target}">{self.fields}</form><script>document.forms[0].submit()</script>'
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_):
        pass


# [PAGE-6] another page's form, a form without its proof or with another session's, a GET: refused, and nothing changed.
def test_forged_changes(stage, browser):
    stage.silence("sick")
    [key] = stage.quarantined()
    refused = len(stage.events("refused"))
    with stage.client() as ours, stage.client() as other:
        mine, others = proof(ours.get("/admin/ui").text), proof(other.get("/admin/ui").text)
        assert mine != others
        clear = {"key": key, "csrf": mine}
        for path, fields, headers in [
            ("quarantine/clear", {"key": key}, {}),
            ("quarantine/clear", {"key": key, "csrf": ""}, {}),
            ("quarantine/clear", {"key": key, "csrf": others}, {}),
            ("quarantine/clear", {"key": key, "csrf": mine[:-1]}, {}),
            ("quarantine/clear", clear, {"origin": "null"}),
            ("quarantine/clear", clear, {"origin": "https://evil.example"}),
            ("quarantine/clear", clear, {"origin": "http://127.0.0.1:1"}),
            ("quarantine/clear", clear, {"sec-fetch-site": "cross-site"}),
            ("quarantine/clear", clear, {"sec-fetch-site": "same-site"}),
            ("quarantine/clear-all", {}, {}),
            ("breakers/reset", {"account": "openai/main"}, {}),
            ("logout", {}, {}),
        ]:
            answer = ours.post(f"/admin/ui/{path}", data=fields, headers=headers)
            assert answer.status_code == 403, (path, fields, headers, answer.text)
        del ours.headers["origin"]
        assert ours.post("/admin/ui/quarantine/clear", data=clear).status_code == 403, "who sends is not told"
        for path in ("quarantine/clear", "breakers/reset", "logout"):
            answer = ours.get(f"/admin/ui/{path}?key={key}&csrf={mine}")
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
        assert stage.quarantined() == [key]
        assert ours.get("/admin/ui").status_code == 200, "signed out"
        assert httpx.post(f"{stage.ui}/quarantine/clear", data=clear, headers={"origin": stage.root}).status_code == 401
        host = {"host": "evil.example"}
        assert ours.get("/admin/ui", headers=host).status_code == 403, "a rebound name"
    assert stage.quarantined() == [key]
    assert len(stage.events("refused")) >= refused + 17
    # And in a browser that is signed in, with everything that the attacker could know.
    sign_in(browser, stage)
    evil = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Evil)
    threading.Thread(target=evil.serve_forever, daemon=True).start()
    try:
        Evil.target = f"{stage.ui}/quarantine/clear"
        Evil.fields = f'<input name=key value="{key}"><input name=csrf value="{proof(browser.source)}">'
        for host in ("127.0.0.1", "localhost"):
            browser.open(f"http://{host}:{evil.server_port}/")
            browser.wait(lambda: browser.url == Evil.target, what="the answer")
            assert "bridge_origin_not_allowed" in browser.source or "nothing was changed" in browser.source
    finally:
        evil.shutdown()
        evil.server_close()
    assert stage.quarantined() == [key]


# [PAGE-4] a forged cookie, one twice, and one that is over: the form, and nothing behind it.
def test_forged_cookies(stage):
    with stage.client() as client:
        good = client.cookies[COOKIE]
    for cookie in ("", "x", "0" * 64, good[:-1], good.upper() + "z", f"{good}; {COOKIE}={good}", TOKEN, "'; DROP TABLE journal; --"):
        answer = httpx.get(stage.ui, headers={"cookie": f"{COOKIE}={cookie}"}, timeout=10)
        assert answer.status_code in (303, 401), cookie
        assert "standing" not in answer.text
        stream = httpx.get(f"{stage.ui}/events", headers={"cookie": f"{COOKIE}={cookie}"}, timeout=10)
        assert stream.status_code == 401


# [PAGE-2] what a browser is told with every answer, whatever it is.
def test_headers(stage):
    with stage.client() as client:
        paths = ["", "/login", "/quarantine/clear-all", "/style.css", "/live.js", "/nothing", "/logout"]
        answers = [client.get(f"/admin/ui{path}") for path in paths]
        answers.append(client.post("/admin/ui/login", data={"token": "wrong"}))
        answers.append(client.post("/admin/ui/quarantine/clear", data={}))
        answers.append(httpx.get(stage.ui, timeout=10))
        with client.stream("GET", "/admin/ui/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            answers.append(stream)
    for answer in answers:
        assert answer.headers["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; "
            "frame-ancestors 'none'; base-uri 'none'"
        ), answer.url
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers


# [PAGE-1] [PAGE-9] nothing comes from elsewhere, not even asked for; and the first view is small.
def test_the_page_is_alone_and_small(stage, browser):
    for thread in range(60):
        stage.turn("sim:text(n=1)", f"thread-{thread}")
    stage.silence("sick")
    refused = len(stage.events("refused"))
    sign_in(browser, stage)
    browser.wait(lambda: browser.find("#live").text == "Live", what="the stream")
    loaded = browser.run("return performance.getEntriesByType('resource').map(e => e.name)")
    assert loaded and all(name.startswith(stage.ui) for name in loaded), loaded
    assert len(stage.events("refused")) == refused, "the browser asked for something that is not there"
    with stage.client() as client:
        sizes = [len(client.get(f"/admin/ui{path}").content) for path in ("", "/style.css", "/live.js")]
    print(f"first view: page, style, script = {sizes}, {sum(sizes)} bytes")
    assert sum(sizes) < 50_000


# [PAGE-20] [PAGE-21] planted markup is text wherever it comes from, and no secret, prompt or output text is shown.
def test_planted_text(stage, browser):
    planted = "<script>window.planted=1</script><img src=x onerror=window.planted=1>"
    stage.turn("sim:text(n=30)", planted, model=planted)
    stage.silence("sick")
    stage.turn("sim:text(n=3)", "sick", model=f"'; DROP TABLE journal; -- \x1b[31m{planted}")
    stage.api("DELETE", "/quarantine", headers={"x-operator": planted})
    sign_in(browser, stage)
    pages = [browser.source]
    query = httpx.QueryParams({"account": f'">{planted}', "kind": f'">{planted}'})
    browser.open(f"{stage.ui}?{query}")
    assert "<script>" in browser.find("#kind").attribute("value")
    pages.append(browser.source)
    browser.wait(lambda: browser.find("#live").text == "Live", what="the stream")
    assert browser.run("return window.planted ?? null") is None
    assert browser.run("return document.querySelectorAll('script').length") == 1
    assert browser.complaints() == []
    with stage.client() as client:
        pages += [client.get(f"/admin/ui{path}").text for path in ("", "/quarantine/clear-all")]
        answer = client.post("/admin/ui/quarantine/clear", data={"key": planted, "csrf": proof(pages[-1])})
        assert answer.status_code == 303
        noticed = client.get("/admin/ui").text
        assert "&lt;script&gt;" in noticed and "<script>window" not in noticed
    said = stage.turn("sim:text(n=30)", "well").text
    output = max((word for word in said.split('"') if " " in word), key=len, default="")
    for page in pages:
        for secret in (TOKEN, CREDENTIAL, PROMPT, "Bearer"):
            assert secret not in page, secret
        assert not output or output not in page
        assert "\x1b" not in page


VIEWS = {
    "login": "/login",
    "overview": "",
    "confirmation": "/quarantine/clear-all",
    "not-found": "/nothing",
}


# [PAGE-19] axe finds nothing, in light and in dark, wide and narrow, on every view, quiet and with an incident under way. Narrow, a
# table that goes on has a shade that says so.
@pytest.mark.parametrize("width", [1360, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe(stage, browser, scheme, width):
    browser.prefer(scheme)
    browser.size(width, 900)
    sign_in(browser, stage)
    look(browser, stage, "quiet", "", scheme, width)
    stage.sicken()
    stage.turn("sim:text(n=3)", "well")
    running = threading.Thread(target=stage.turn, args=("sim:text(n=60,delay=100ms)", "long"))
    running.start()
    for name, path in VIEWS.items():
        look(browser, stage, name, path, scheme, width)
        shades = browser.run("return [...document.querySelectorAll('.scroll')].filter(of => of.scrollWidth > of.clientWidth)"
                             ".map(of => getComputedStyle(of).backgroundImage.split('linear-gradient').length - 1)")
        assert all(count == 4 for count in shades), (name, shades)
        assert shades or width > 400 or name != "overview"
    running.join()
    browser.open(f"{stage.ui}/login")
    browser.find("#token").type("wrong")
    browser.find("main button").click()
    judge(browser, f"wrong token {scheme} {width}")


def look(browser: Browser, stage: Stage, name: str, path: str, scheme: str, width: int) -> None:
    browser.open(stage.ui + path)
    browser.shoot(PICTURES / f"{name}-{scheme}-{width}.png")
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth"), f"{name} is wider than {width}"
    judge(browser, f"{name} {scheme} {width}")


def judge(browser: Browser, what: str) -> None:
    # By the driver, not by the page: the page's policy lets no other script in.
    browser.run(AXE.read_text() + "\nreturn null")
    found = browser.run_async("const done = arguments[arguments.length - 1]; axe.run().then(done)")
    assert len(found["passes"]) > 10
    faults = [(one["id"], [node["html"] + node["failureSummary"] for node in one["nodes"]]) for one in found["violations"]]
    assert faults == [], what


# [PAGE-17] who wants less motion gets none.
def test_reduced_motion(stage, browser):
    browser.prefer("light", motion="reduce")
    sign_in(browser, stage)
    browser.wait(lambda: browser.find("#live").text == "Live", what="the stream")
    stage.turn("sim:text(n=1)", "well")
    browser.wait(lambda: browser.find_all("#events .fresh"), what="the live event")
    assert browser.run("return getComputedStyle(document.querySelector('#events .fresh')).animationName") == "none"


# [PAGE-16] a page that looks on does not hold up the end of the bridge.
def test_the_end_of_the_bridge_ends_streams(stage):
    with stage.client() as client, client.stream("GET", "/admin/ui/events") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "retry: 2000"
        began = time.monotonic()
        stage.program.stop(within=20)
        assert time.monotonic() - began < 5


# [PAGE-4] another token ends every session: the page's next look says so, and its stream ends.
def test_another_token_ends_sessions(stage, browser):
    sign_in(browser, stage)
    browser.wait(lambda: browser.find("#live").text == "Live", what="the stream")
    stage.token_file.write_text("another-admin-token-0123456789")
    stage.program.signal(signal.SIGHUP)
    stage.program.wait_until(lambda: stage.events("config_reloaded"), 20, "the reload")
    browser.wait(lambda: browser.find("#live").text == "Not live: refresh to go on", what="the stream's end")
    browser.find("header a.button").click()
    browser.wait(lambda: browser.find_all("#wrong"), what="the form")
    assert browser.find("#wrong").text == "Your session is over. Sign in again."
    browser.find("#token").type(TOKEN + "\ue007")
    browser.wait(lambda: "That is not the admin token" in browser.text(), what="the old token's end")
    browser.find("#token").type("another-admin-token-0123456789\ue007")
    browser.wait(lambda: browser.find_all("#standing"), what="the overview")


# [REL-20] a token that is taken out of the file: the streams of a browser that signed in with it end, and it is nobody.
def test_a_token_that_is_taken_away(tmp_path):
    with staged(tmp_path, None) as stage, stage.client() as client:
        with client.stream("GET", "/admin/ui/events") as page, client.stream("GET", "/admin/events") as api:
            assert (page.status_code, api.status_code) == (200, 200)
            config = tmp_path / "bridge.toml"
            lines = [line for line in config.read_text().splitlines() if "admin_token" not in line]
            config.write_text("\n".join(lines))
            stage.program.signal(signal.SIGHUP)
            # They come to an end, and the last word is not told any more.
            assert all("server.admin_token" not in "".join(stream.iter_text()) for stream in (page, api))
        stage.program.wait_until(lambda: stage.events("config_reloaded"), 20, "the reload")
        assert stage.events("config_reloaded")[0]["changed"] == ["server.admin_token"]
        # Where there is no page, no origin is its own.
        del client.headers["origin"]
        for path in ("/admin/ui", "/admin/ui/events", "/admin/sessions"):
            assert client.get(path).status_code == 404


# [PAGE-22] no token, no page; and where operators have a listener of their own, it is there alone.
def test_where_the_page_is(tmp_path):
    (tmp_path / "one").mkdir()
    with staged(tmp_path / "one", "") as stage:
        for path in ("", "/login", "/style.css", "/events"):
            assert httpx.get(stage.ui + path, timeout=10).status_code == 404
        assert httpx.post(f"{stage.ui}/login", data={"token": ""}, headers={"origin": stage.root}, timeout=10).status_code == 403
        assert httpx.post(f"{stage.ui}/login", data={"token": ""}, timeout=10).status_code == 404
    (tmp_path / "two").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = f'admin_listen = "127.0.0.1:{port}"\nadmin_token = {{ env = "BRIDGE_ADMIN_TOKEN" }}'
    with staged(tmp_path / "two", server) as stage:
        assert httpx.get(f"{stage.ui}/login", timeout=10).status_code == 404
        there = f"http://127.0.0.1:{port}"
        assert "Sign in" in httpx.get(f"{there}/admin/ui/login", timeout=10).text
        answer = httpx.post(f"{there}/admin/ui/login", data={"token": TOKEN}, headers={"origin": there}, timeout=10)
        assert answer.status_code == 303


# [PAGE-6] [PAGE-22] an origin that may call the API for clients is a foreign one here; and nothing but /admin is exempt.
def test_allowed_origins_are_foreign(tmp_path):
    friend = "http://localhost:3000"
    server = f'admin_token = {{ env = "BRIDGE_ADMIN_TOKEN" }}\nallow_origins = ["{friend}"]'
    with staged(tmp_path, server) as stage, stage.client() as client:
        csrf = proof(client.get("/admin/ui").text)
        stage.silence("sick")
        fields = {"key": stage.quarantined()[0], "csrf": csrf}
        for headers in ({"origin": friend}, {"origin": friend, "sec-fetch-site": "same-site"}):
            assert client.post("/admin/ui/quarantine/clear", data=fields, headers=headers).status_code == 403
            answer = client.get("/admin/ui", headers=headers)
            assert answer.status_code == 403 and "standing" not in answer.text
        assert len(stage.quarantined()) == 1
        assert client.get("/v1/models", headers={"authorization": "Bearer caller"}).status_code == 403, "its own origin"
        assert client.get("/health/live").status_code == 403
        assert client.get("/administrator").status_code == 403


# [PAGE-23] a signed-in browser reads the API; it changes something with its proof only.
def test_the_api_by_cookie(stage):
    with stage.client() as client:
        csrf = proof(client.get("/admin/ui").text)
        assert client.get("/admin/status").status_code == 200
        drain = {"json": {"draining": True}}
        for headers in ({}, {"x-csrf-token": "0" * 64}, {"x-csrf-token": csrf, "origin": "https://evil.example"}):
            assert client.put("/admin/drain", headers=headers, **drain).status_code == 403
        assert httpx.get(f"{stage.root}/health/ready", timeout=10).status_code == 200
        assert client.put("/admin/drain", headers={"x-csrf-token": csrf}, **drain).status_code == 200
        assert stage.events("operator_action")[-1]["by"] == "page"


# [PAGE-16] so many pages look on, and one more is told to wait; one that is closed makes room.
def test_streams_are_bounded(stage):
    with stage.client() as client, contextlib.ExitStack() as open_pages:
        for _ in range(32):
            stream = open_pages.enter_context(client.stream("GET", "/admin/ui/events"))
            assert stream.status_code == 200
        over = client.get("/admin/ui/events")
        assert over.status_code in (429, 503)
        assert over.headers["retry-after"] == "10"
        open_pages.close()
        end = time.monotonic() + 10
        while True:
            with client.stream("GET", "/admin/ui/events") as stream:
                if stream.status_code == 200:
                    break
            assert time.monotonic() < end, "no room again"
            time.sleep(0.1)
