"""What lies in deploy/: that it can be used, and that all that it names exists."""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import httpx
import pytest

from bridge import Bridge, Simulator
from places import BRIDGE

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ANCHOR = "README.md#deployment-alerts-and-the-runbook"


def run(*words: str | Path, **more) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, **more)


# The unit


def unit() -> dict[str, list[str]]:
    """Every setting of the unit with all its values, in order; none is continued on another line."""
    settings = defaultdict(list)
    for line in (DEPLOY / "responses-bridge.service").read_text().splitlines():
        if line and line[0] not in "#;[":
            name, _, value = line.partition("=")
            settings[name.strip()].append(value.strip())
    return settings


def seconds(text: str) -> float:
    """A duration as systemd and the bridge both write it."""
    units = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600}
    parts = re.findall(r"(\d+)\s*([a-z]+)", text)
    assert parts, text
    return sum(int(number) * units[name] for number, name in parts)


# [DEP-1] The unit is hardened.
def test_the_unit_is_hardened():
    settings = unit()
    wanted = {
        "DynamicUser": "yes",
        "StateDirectory": "responses-bridge",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "NoNewPrivileges": "yes",
        "PrivateTmp": "yes",
        "PrivateDevices": "yes",
        "RestrictNamespaces": "yes",
        "MemoryDenyWriteExecute": "yes",
        "CapabilityBoundingSet": "",
        "UMask": "0077",
        "Type": "exec",
    }
    assert {name: settings[name][-1] for name in wanted} == wanted
    assert set(settings["RestrictAddressFamilies"][0].split()) == {"AF_INET", "AF_INET6", "AF_UNIX"}
    assert settings["SystemCallFilter"][0] == "@system-service"
    assert int(settings["LimitNOFILE"][0]) >= 65536
    assert not settings["Environment"] + settings["EnvironmentFile"], "secrets are credentials"
    # Each credential that the configuration reads is loaded, and none in vain.
    names = re.findall(r"/run/credentials/responses-bridge\.service/([a-z-]+)", (DEPLOY / "bridge.toml").read_text())
    assert sorted(names) == sorted(value.split(":")[0] for value in settings["LoadCredential"])


# [DEP-1] By systemd's own judgement, where it can be asked: it has no other place in the tests' machine.
def test_the_unit_is_one_of_systemd(tmp_path: Path):
    text = (DEPLOY / "responses-bridge.service").read_text()
    path = tmp_path / "responses-bridge.service"
    program = unit()["ExecStart"][0].split()[0]
    path.write_text(text.replace(f"ExecStart={program}", f"ExecStart={BRIDGE}"))
    sections = re.findall(r"^\[(\w+)\]$", text, re.MULTILINE)
    assert sections == ["Unit", "Service", "Install"]
    assert all(re.fullmatch(r"#.*|\[\w+\]|[A-Z]\w+=.*|", line) for line in text.splitlines())
    if not shutil.which("systemd-analyze"):
        return
    verified = run("systemd-analyze", "verify", path)
    assert (verified.returncode, verified.stderr) == (0, ""), verified
    judged = run("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", path)
    assert judged.returncode == 0, judged.stdout[-300:]


# [DEP-2] The last answers and the last writes have five seconds each after it.
def test_the_unit_outlasts_the_drain():
    settings = unit()
    drain = seconds(re.search(r'^drain = "(.*)"', (DEPLOY / "bridge.toml").read_text(), re.MULTILINE)[1])
    assert drain == seconds(re.search(r'^drain = "(.*)"', (ROOT / "config.example.toml").read_text(), re.MULTILINE)[1])
    assert seconds(settings["TimeoutStopSec"][0]) >= drain + 15
    assert settings["ExecReload"] == ["/bin/kill -HUP $MAINPID"]
    assert settings["Restart"] == ["on-failure"]
    words = shlex.split(settings["ExecStart"][0])
    assert words[1:] == ["serve", "--config", "/etc/responses-bridge/bridge.toml"]


# The configurations


def in_force(config: Path, environment: dict[str, str], *flags: str) -> dict:
    checked = run(BRIDGE, "check", config, "--json", *flags, env={"HOME": "/nowhere", **environment})
    report = json.loads(checked.stdout)
    assert checked.returncode == 0, report
    return report["in_force"]


# [DEP-3] The configurations can be served.
def test_the_configurations_can_be_served(tmp_path: Path):
    for name in ["openai", "admin-token"]:
        (tmp_path / name).write_text(f"made-up-{name}\n")
    text = (DEPLOY / "bridge.toml").read_text()
    config = tmp_path / "bridge.toml"
    config.write_text(text.replace("/run/credentials/responses-bridge.service", str(tmp_path)))
    unit_config = in_force(config, {})
    assert unit_config["server"]["admin_token"]
    secrets = ["OPENAI_API_KEY", "BRIDGE_CLIENT_KEY", "BRIDGE_ADMIN_TOKEN"]
    container = in_force(DEPLOY / "container.toml", {name: f"made-up-{name}" for name in secrets})
    assert container["server"]["listen"] == "0.0.0.0:8787"
    assert container["server"]["admin_token"] and container["clients"] == ["agents"]


# [DEP-10] [CFG-21] As an operator's shell has it: without the unit's environment, the image's volume, and any secret.
def test_the_state_is_where_the_unit_and_the_image_keep_it():
    (kept,) = unit()["StateDirectory"]
    for name, place in {"bridge.toml": f"/var/lib/{kept}", "container.toml": only(containerfile(), "VOLUME")}.items():
        assert in_force(DEPLOY / name, {}, "--without-secrets")["state"]["path"] == place


# The container


def containerfile() -> list[tuple[str, str]]:
    """Its instructions, continued lines joined."""
    text = re.sub(r"\\\n", " ", (DEPLOY / "Containerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def only(instructions: list[tuple[str, str]], word: str) -> str:
    (value,) = [rest for name, rest in instructions if name == word]
    return value


# [DEP-4] [DEP-10] The image is what it should be.
def test_the_image_is_what_it_should_be():
    instructions = containerfile()
    last = max(number for number, (word, _) in enumerate(instructions) if word == "FROM")
    build, image = instructions[:last], instructions[last:]
    assert len([word for word, _ in instructions if word == "FROM"]) == 2
    copied = [shlex.split(rest) for word, rest in instructions if word == "COPY"]
    sources = [source for words in copied if not words[0].startswith("--from=") for source in words[:-1]]
    assert all((ROOT / source).exists() for source in sources), sources
    # All that the manifest names, and all that the source includes, is there to be built.
    assert {"Cargo.toml", "Cargo.lock", "src", "benches"} <= set(sources)
    for path in (ROOT / "src").rglob("*.rs"):
        for included in re.findall(r'include_(?:str|bytes)!\("([^"]+)"\)', path.read_text()):
            target = (path.parent / included).resolve().relative_to(ROOT)
            assert any(target.is_relative_to(source) for source in sources), f"{path} includes {target}"
    assert "--locked" in only(build, "RUN")
    toolchain = re.search(r"rust:(\d+\.\d+)", build[0][1])[1]
    assert toolchain == re.search(r'^rust-version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
    assert "ca-certificates" in only(image, "RUN")
    user, group = only(image, "USER").split(":")
    assert int(user) > 0 and int(group) > 0
    assert f"--owner {user} --group {group}" in only(image, "RUN")
    assert only(image, "VOLUME") == "/var/lib/responses-bridge"
    assert only(image, "ENV") == f"STATE_DIRECTORY={only(image, 'VOLUME')}"
    assert only(image, "STOPSIGNAL") == "SIGTERM"
    listen = re.search(r'^listen = ".*:(\d+)"', (DEPLOY / "container.toml").read_text(), re.MULTILINE)[1]
    assert only(image, "EXPOSE") == listen
    (program,) = json.loads(only(image, "ENTRYPOINT"))
    assert ["--from=build", "/build/target/release/responses-bridge", program] in copied
    verb, *options = json.loads(only(image, "CMD"))
    assert ["deploy/container.toml", options[1]] in copied
    assert options[0] in run(BRIDGE, verb, "--help").stdout


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A bridge that had traffic: healthy turns on both transports, a silence, a refusal, a closed socket, a wait."""
    directory = tmp_path_factory.mktemp("deploy")
    simulator = Simulator()
    bridge = Bridge(directory, f"{simulator.root}/v1", created_deadline="500ms", quarantine_window="30s")
    url = f"{bridge.base_url}/responses"

    def ask(prompt: str, thread: str, **headers: str) -> None:
        body = {"model": "gpt-5", "stream": True, "input": prompt}
        key = {"authorization": "Bearer made-up", "thread-id": thread}
        httpx.post(url, json=body, headers=key | headers, timeout=20)

    try:
        ask("Hello", "one")
        ask("Hello sim:silent(on=ws)", "two")
        ask("Hello again", "two")
        ask("Hello sim:close(code=1011)", "three")
        ask("Hello sim:error(status=429, retry_after=1)", "four")
        httpx.post(url, json={"model": "gpt-5", "input": "x"}, timeout=20)
        yield bridge
    finally:
        bridge.stop()
        simulator.stop()


# [DEP-4] The health check tells life from death.
def test_the_health_check_tells_life_from_death(played: Bridge):
    check = only(containerfile(), "HEALTHCHECK")
    assert re.findall(r"--(\w[\w-]*)=", check) == ["interval", "timeout", "start-period", "retries"]
    words = json.loads(check.partition(" CMD ")[2])
    here = [word.replace("/8787", f"/{played.port}") for word in words]
    assert here != words
    alive = run(*here)
    assert alive.returncode == 0, alive
    # Nothing listens on the discard port; and what answers otherwise is not alive.
    assert run(*[word.replace("/8787", "/9") for word in words]).returncode != 0
    assert run(*[word.replace("/health/live", "/nowhere") for word in here]).returncode != 0


# Alerts and dashboard


def promtool() -> str:
    """As tests/run unpacks it."""
    places = [os.environ.get("PROMTOOL"), f"{os.environ.get('tools', '')}/promtool"]
    places += [str(ROOT / "target/test-tools/promtool"), shutil.which("promtool")]
    found = next((place for place in places if place and os.access(place, os.X_OK)), None)
    assert found, "no promtool: run tests/run tools"
    return found


# YAML in the shape in which these files are written needs no parser: promtool is the one that judges it.
def rules() -> list[dict[str, str]]:
    """Each rule with its expression, joined to one line, and its other settings."""
    text = re.sub(r"^\s*#.*\n", "", (DEPLOY / "prometheus/alerts.yml").read_text(), flags=re.MULTILINE)
    found = []
    for block in re.split(r"\n\s*- (?=alert:|record:)", text)[1:]:
        rule = dict(re.findall(r"^\s*(alert|record|for|summary|description|runbook): (.*)$", block, re.MULTILINE))
        folded = re.search(r"^(\s*)expr:( >-\n(?:\1 +.*\n?)+| .*)", block, re.MULTILINE)
        rule["expr"] = " ".join(folded[2].removeprefix(" >-").split())
        rule["severity"] = (re.findall(r"severity: (\w+)", block) or [""])[0]
        found.append(rule)
    return found


def alerts() -> list[dict[str, str]]:
    return [rule for rule in rules() if "alert" in rule]


# [DEP-5] [DEP-9] [DEP-11] promtool accepts the rules and their tests pass.
def test_promtool_accepts_the_rules_and_their_tests_pass():
    folder = DEPLOY / "prometheus"
    checked = run(promtool(), "check", "rules", "alerts.yml", cwd=folder)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(rules())} rules found" in checked.stdout
    tested = run(promtool(), "test", "rules", "alerts_test.yml", cwd=folder)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    tests = (folder / "alerts_test.yml").read_text()
    for case in ["the only account is over its limits", "the only account's credential is refused", "the only account cannot be reached"]:
        assert f'- name: "{case}' in tests


# [DEP-5] Every alert says what it must and fires in a test.
def test_every_alert_says_what_it_must_and_fires_in_a_test():
    tests = (DEPLOY / "prometheus/alerts_test.yml").read_text()
    fired = re.findall(r"alertname: (\w+)\n\s*exp_alerts:\n\s*- exp_labels", tests)
    quiet = re.findall(r"alertname: (\w+), exp_alerts: \[\]", tests)
    names = [alert["alert"] for alert in alerts()]
    assert len(names) == len(set(names)) >= 14
    assert set(fired) == set(names)
    assert set(quiet) == set(names)
    for alert in alerts():
        assert alert["severity"] in {"warning", "critical"}, alert
        assert alert["summary"] and alert["description"], alert
        assert alert["runbook"].strip('"') == ANCHOR
    headings = re.findall(r"^#+ (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    anchors = [re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings]
    assert ANCHOR.partition("#")[2] in anchors


def dashboard() -> dict:
    return json.loads((DEPLOY / "grafana/dashboard.json").read_text())


def queries() -> list[str]:
    """Every expression of the dashboard, its variables filled in."""
    board = dashboard()
    found = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    found += [note["expr"] for note in board["annotations"]["list"]]
    found += [v["definition"] for v in board["templating"]["list"] if v["type"] == "query"]
    return found


def scraped(bridge: Bridge) -> dict[str, set[str]]:
    """The labels of every metric; histograms under their own name."""
    answer = httpx.get(f"http://127.0.0.1:{bridge.port}/metrics", timeout=10)
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", answer.text, re.MULTILINE))
    found: dict[str, set[str]] = defaultdict(set)
    for name, labels in re.findall(r"^(bridge_\w+?)(?:\{(.*)\})? \S+$", answer.text, re.MULTILINE):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        if kinds.get(base) == "histogram":
            name = base
        found[name] |= set(re.findall(r'(\w+)="', labels or ""))
    return found


def counter(recorded: str) -> str:
    """What a rule like bridge:events:recent10m counts."""
    return f"bridge_{recorded.split(':')[1]}_total"


SCRAPE = {"job", "instance"}
WORD = r'(\w+)\s*(?:=~|!~|!=|=)\s*"'


# [DEP-6] Every metric and label exists.
def test_every_metric_and_label_exists(played: Bridge):
    known = scraped(played)
    # Its first row may be another's work: it is in the source, or it is not named here.
    assert {"bridge_turns_total", "bridge_accept_seconds", "bridge_watchdog_trips_total"} <= set(known)
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    expressions = [rule["expr"] for rule in rules()] + queries()
    assert len(expressions) > 50
    for expression in expressions:
        named = re.findall(r"\bbridge_\w+", expression)
        for name in named:
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            assert name in known or base in known, f"{name} in {expression}"
        assert set(re.findall(r"\bbridge:[\w:]+", expression)) <= recorded, expression
        # Of what an expression names together, each label must be one of the metric's.
        for name, selector in re.findall(r"\b(bridge[_:][\w:]+)\{([^}]*)\}", expression):
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            labels = known[counter(name)] if name in recorded else known.get(name) or known[base]
            assert set(re.findall(WORD, selector)) <= labels | SCRAPE, f"{name}{{{selector}}}"
        allowed = set().union(*(known.get(re.sub(r"_(bucket|sum|count)$", "", name)) or known.get(name, set()) for name in named))
        allowed |= set().union(*(known[counter(name)] for name in re.findall(r"\bbridge:[\w:]+", expression)))
        for grouped in re.findall(r"\bby \(([^)]*)\)", expression):
            assert set(re.findall(r"\w+", grouped)) <= allowed | SCRAPE | {"le"}, expression


# [DEP-6] Events, reasons and outcomes by the README's tables, which are tested against the source.
def test_the_words_that_alerts_ask_for_are_the_bridges():
    readme = (ROOT / "README.md").read_text()

    def names(section: str) -> set[str]:
        text = re.search(rf"^## {section}\n(.*?)(?=^## )", readme, re.MULTILINE | re.DOTALL)[1]
        return set(re.findall(r"`(?:bridge_)?([a-z][a-z_]*)`", text))

    words = names("Events") | names("Errors of the bridge's own") | names("Metrics")
    for rule in alerts():
        for label, values in re.findall(r'\b(event|reason|outcome|kind|class) *[=!]~?"([^"]*)"', rule["expr"]):
            unknown = set(values.split("|")) - words
            # What an operator did is told by the admin API, which has a table of its own.
            unknown -= {"drain_on", "drain_off"} if label == "reason" else set()
            assert not unknown, f"{rule['alert']}: {label} {unknown}"


# [DEP-7] The dashboard can be imported.
def test_the_dashboard_can_be_imported():
    board = dashboard()
    assert board["schemaVersion"] >= 39 and board["uid"] and board["title"]
    variables = {variable["name"]: variable for variable in board["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        taken = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, panel["title"]
        cells |= taken
        for target in panel.get("targets", []):
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    for expression in queries():
        used = set(re.findall(r"\$(\w+)", expression)) - {"__rate_interval"}
        assert used <= set(variables), expression
        if "bridge_" in expression and not expression.startswith("label_values"):
            assert expression.count('job=~"$job"') == len(re.findall(r"\bbridge_\w+", expression)), expression
    # What an operator looks for first.
    titles = " | ".join(panel["title"] for panel in panels)
    for subject in ["outcome", "transport", "response.created", "Quarantined", "Silent sessions", "Sessions by state", "Sockets",
                    "Refusals", "Accounts left out", "Store", "Queue", "Events by reason"]:
        assert subject in titles, subject


# [DEP-7] Each as a rule of its own, which is how promtool reads an expression.
def test_promtool_can_read_the_dashboards_queries(tmp_path: Path):
    lines = ["groups:", "- name: dashboard", "  rules:"]
    expressions = [query for query in queries() if not query.startswith("label_values")]
    for number, query in enumerate(expressions):
        query = query.replace("$__rate_interval", "5m").replace("$deadline", "60")
        lines += [f"  - record: 'panel:{number}'", f"    expr: {json.dumps(query)}"]
    path = tmp_path / "dashboard.yml"
    path.write_text("\n".join(lines) + "\n")
    checked = run(promtool(), "check", "rules", path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


# The runbook


def runbook() -> list[list[str]]:
    readme = (ROOT / "README.md").read_text()
    section = re.search(r"^### Deployment, alerts, and the runbook\n(.*?)(?=^##)", readme, re.MULTILINE | re.DOTALL)[1]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines() if line.startswith("| `Bridge")]
    assert all(len(row) == 4 for row in rows), rows
    return rows


# [DEP-8] Every alert has its row in the runbook.
def test_every_alert_has_its_row_in_the_runbook():
    assert [row[0].strip("`") for row in runbook()] == [alert["alert"] for alert in alerts()]
    for _, command, meaning, _ in runbook():
        assert command.startswith("`responses-bridge ") and meaning


# [DEP-8] Those in backticks anywhere in a row, with their options.
def test_every_command_of_the_runbook_is_one():
    listed = run(BRIDGE, "--help").stdout
    verbs = set(re.findall(r"^  ([a-z]+)  ", listed, re.MULTILINE))
    assert {"serve", "check", "rehearse"} <= verbs
    seen = set()
    for row in runbook():
        for command in re.findall(r"`(?:responses-bridge )?([a-z]+(?: [^`]*)?)`", " | ".join(row[1:])):
            verb, *words = shlex.split(command)
            if verb not in verbs:
                # A word of an event's, a key of the configuration, another program.
                continue
            seen.add(verb)
            subverb = [word for word in words if re.fullmatch("ls|clear|on|off", word)]
            told = run(BRIDGE, verb, *subverb, "--help")
            assert told.returncode == 0, command
            for option in [word for word in words if word.startswith("--")]:
                assert re.search(rf"{option}\b", told.stdout), f"{command}: {option}"
    assert seen >= {"check", "events", "explain", "tune", "rehearse", "status", "quarantine", "drain"}
