#!/usr/bin/env python3
"""The metrics of ndt-web, the alerts and the dashboard made of them. Standard library only.

  web_metrics_test.py tables SOURCE_DIR BIN_DIR   docs/metrics.md has each metric; alerts and dashboard know no other one
  web_metrics_test.py live SOURCE_DIR BIN_DIR     a running Prometheus reads a running ndt-web while a drive is played

Exit codes: 0 passed, 1 failed, 77 skipped: no promtool or no prometheus (Debian: prometheus)."""

import argparse
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

from web_programs import Daemon, Drive, Program, Sender, Web, free_port, wait_until

NAME = re.compile(r"\b(?:ndtd|ndt_web|process)_[a-z0-9_]+\b")
SELECTOR = re.compile(r"([a-z_]+)\s*(=~|!~|=|!=)\s*\"([^\"]*)\"")
OF_PROMETHEUS = {"job", "instance", "le", "alertname", "alertstate"}
SCANS = 60
# What a simulated drive without recovery, with a map that is loaded already, does not have: its stamps are of another clock.
NOT_IN_DRIVE = {"ndtd_margin_ratio", "ndtd_map_loading_elapsed_seconds", "ndtd_pose_delay_seconds"}


def metrics_of(bin_dir):
    """{name: (type, unit, labels, help)} of `ndt-web --list-metrics`."""
    text = subprocess.run([bin_dir / "ndt-web", "--list-metrics"], capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in text.splitlines()]
    assert len(rows) > 50 and all(len(row) == 5 for row in rows), text[:500]
    return {name: (kind, unit, labels, about) for name, kind, unit, labels, about in rows}


def names_in(expression, metrics):
    """Names in a PromQL expression that are metrics; AssertionError for one that is not."""
    bare = re.sub(r"\{[^}]*\}", "", expression)
    bare = re.sub(r"\b(?:by|on|ignoring|without)\s*\([^)]*\)", "", bare)
    for name in NAME.findall(bare):
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        is_histogram = metrics.get(family, [""])[0] == "histogram"
        assert name in metrics and not metrics[name][0] == "histogram" or is_histogram, f"there is no metric {name}: {expression}"
        yield family if is_histogram else name


def check_labels(expression, metrics):
    known = set(OF_PROMETHEUS)
    for name in names_in(expression, metrics):
        known |= set(metrics[name][2].split(","))
    used = [label for label, _, _ in SELECTOR.findall(expression)]
    for labels in re.findall(r"\b(?:by|on|ignoring|without)\s*\(([^)]*)\)", expression):
        used += labels.replace(" ", "").split(",")
    assert set(used) <= known, f"there are no labels {set(used) - known}: {expression}"
    return known


def alert_expressions(source):
    """{alert: expression}, without a YAML parser: from `expr:` up to the next key."""
    text = (source / "config/monitoring/prometheus-alerts.yaml").read_text()
    found = {}
    for block in re.split(r"^      - alert: ", text, flags=re.M)[1:]:
        expression = re.search(r"^        expr: (.*?)^        \w+:", block, re.S | re.M).group(1)
        found[block.split()[0]] = " ".join(expression.replace(">-", "").split())
    return found


def panels_of(source):
    return json.loads((source / "config/monitoring/grafana-dashboard.json").read_text())


def panel_expressions(source):
    """(title of the panel, expression) with the variables of Grafana replaced by values."""
    for panel in panels_of(source)["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"].replace("$__rate_interval", "1m")
            yield panel["title"], expression


def doc_expressions(source):
    """The questions of docs/metrics.md."""
    for line in (source / "docs/metrics.md").read_text().splitlines():
        match = re.fullmatch(r"\| ([a-z][^|`]*) \| `(.*)` \|", line)
        if match:
            yield match.group(1), match.group(2).replace("\\|", "|")


def expressions_of(source):
    return [*alert_expressions(source).items(), *panel_expressions(source), *doc_expressions(source)]


# ---- tables


def check_docs(source, metrics):
    """The tables of docs/metrics.md: | `name` | type | unit | labels | ..."""
    rows = {}
    for line in (source / "docs/metrics.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        name = cells[0].strip("`")
        if line.startswith("| `") and NAME.fullmatch(name):
            assert name not in rows, f"docs/metrics.md has {name} twice"
            rows[name] = tuple(cell.replace("`", "").replace(" ", "") or "-" for cell in cells[1:4])
            assert len(cells) >= 5 and cells[4], f"docs/metrics.md says nothing about {name}"
    for name, (kind, unit, labels, _) in metrics.items():
        assert name in rows, f"docs/metrics.md has no row for {name}"
        assert rows[name] == (kind, unit, labels), f"docs/metrics.md: {name}: {rows[name]} is not {(kind, unit, labels)}"
    assert set(rows) == set(metrics), f"docs/metrics.md has {set(rows) - set(metrics)}, ndt-web has not"


def check_names(metrics):
    for name, (kind, unit, _, about) in metrics.items():
        ending = {"counter": "_total", "info": "_info"}.get(kind, "")
        assert name.endswith(ending) and (ending or not name.endswith(("_total", "_info"))), name
        assert unit == "-" or name[: len(name) - len(ending)].endswith("_" + unit), (name, unit)
        assert about.endswith(".") and len(about) > 12, (name, about)


def check_layout(dashboard, metrics):
    """Panels have a unit, the data source of the variable and room of their own."""
    taken, ids = {}, set()
    for panel in dashboard["panels"]:
        title, at = panel["title"], panel["gridPos"]
        assert panel["id"] not in ids, f"two panels have the id {panel['id']}"
        ids.add(panel["id"])
        assert at["x"] + at["w"] <= 24, f"{title} is too wide"
        for cell in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
            assert cell not in taken, f"{title} lies on {taken[cell]}"
            taken[cell] = title
        if panel["type"] == "row":
            continue
        assert panel["datasource"]["uid"] == "${datasource}" and panel["description"], title
        assert panel["type"] == "heatmap" or panel["fieldConfig"]["defaults"]["unit"], f"{title} has no unit"
        for target in panel["targets"]:
            assert "datasource" not in target, f"{title}: a query has that of its panel"
            assert 'instance="$instance"' in target["expr"], title
            legend = re.findall(r"{{(\w+)}}", target["legendFormat"])
            assert set(legend) <= check_labels(target["expr"], metrics), f"{title}: {legend}"
    rows = [panel["title"] for panel in dashboard["panels"] if panel["type"] == "row"]
    assert rows == ["Health", "Latency", "Quality", "Map", "Resources"], rows
    assert dashboard["id"] is None and [v["name"] for v in dashboard["templating"]["list"]] == ["datasource", "instance"]


def promtool(*arguments, **options):
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"promtool {arguments[0]} {arguments[1]}: {done.stdout}{done.stderr}"
    # Its hints do not change the exit status.
    return done.stdout + done.stderr


def tables(source, bin_dir):
    metrics = metrics_of(bin_dir)
    check_names(metrics)
    check_docs(source, metrics)
    check_layout(panels_of(source), metrics)
    expressions = expressions_of(source)
    assert len(list(doc_expressions(source))) >= 5
    for _, expression in expressions:
        assert list(names_in(expression, metrics)) or expression.startswith("up{"), f"no metric: {expression}"
        check_labels(expression, metrics)
    print(f"{len(metrics)} metrics, {len(expressions)} expressions")
    if not shutil.which("promtool"):
        print("skipped: no promtool (Debian: prometheus)")
        return 77
    promtool("check", "config", "prometheus-scrape.yaml", cwd=source / "config/monitoring")
    promtool("check", "rules", "prometheus-alerts.yaml", cwd=source / "config/monitoring")
    promtool("test", "rules", "prometheus_alerts_test.yaml", cwd=source / "tests/web")
    tested = (source / "tests/web/prometheus_alerts_test.yaml").read_text()
    for alert in alert_expressions(source):
        assert f'alertname="{alert}"' in tested, f"prometheus_alerts_test.yaml has no test of {alert}"
    return 0


# ---- live


class Prometheus(Program):
    """Debian's prometheus with a folder of its own, that reads one ndt-web every second."""

    def __init__(self, folder, source, web):
        super().__init__(pathlib.Path(shutil.which("prometheus")).parent, folder, "prometheus")
        self.port, self.instance = free_port(), f"127.0.0.1:{web.port}"
        text = (source / "config/monitoring/prometheus-scrape.yaml").read_text()
        for old, new in (
            ("127.0.0.1:8080", self.instance),
            ("scrape_interval: 5s", "scrape_interval: 1s"),
            ("evaluation_interval: 5s", "evaluation_interval: 1s"),
            ("[prometheus-alerts.yaml]", f"[{source / 'config/monitoring/prometheus-alerts.yaml'}]"),
        ):
            assert old in text, old
            text = text.replace(old, new)
        (self.folder / "prometheus.yaml").write_text(text)

    def start(self):
        address = f"127.0.0.1:{self.port}"
        self.launch("--config.file=prometheus.yaml", "--storage.tsdb.path=tsdb", f"--web.listen-address={address}", "--log.level=warn")
        wait_until(lambda: f"prometheus answers: {self.log()[-500:]}", lambda: self.expect_alive() and self.is_ready())
        return self

    def ask(self, path, **parameters):
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=60) as reply:
            answer = json.load(reply)
        assert answer["status"] == "success", answer
        return answer["data"]

    def is_ready(self):
        try:
            return self.ask("/api/v1/query", query="1")
        except OSError:
            return False

    def values(self, expression):
        expression = expression.replace("$instance", self.instance)
        return [float(item["value"][1]) for item in self.ask("/api/v1/query", query=expression)["result"]]

    def value(self, expression):
        """The one value of an expression; NaN without one."""
        found = self.values(expression)
        assert len(found) <= 1, (expression, found)
        return found[0] if found else math.nan

    def expect(self, expression, wanted):
        wait_until(lambda: f"{expression} is {wanted}: {self.values(expression)}", lambda: self.value(expression) == wanted)


def check_formats(web, metrics):
    """promtool accepts the text, and every metric that it has is in the table."""
    _, headers, text = web.get("metrics")
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", headers["Content-Type"]
    hints = promtool("check", "metrics", input=text.decode())
    assert not hints, hints
    families = re.findall(r"^# TYPE (\S+) ", text.decode(), re.M)
    assert set(families) <= set(metrics) and len(families) == len(set(families)), set(families) - set(metrics)
    _, headers, text = web.get("metrics", {"Accept": "application/openmetrics-text;version=1.0.0"})
    assert headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0"), headers["Content-Type"]
    assert text.endswith(b"\n# EOF\n")
    try:  # a stricter parser than that of Prometheus
        from prometheus_client.openmetrics.parser import text_string_to_metric_families
    except ImportError:
        print("note: no prometheus_client (Debian: python3-prometheus-client), OpenMetrics is read by Prometheus only")
    else:
        assert len(list(text_string_to_metric_families(text.decode()))) == len(families)
    return set(families)


def check_label_values(source, web):
    """Alerts and dashboard select values of labels that there are."""
    text = web.get("metrics")[2].decode()
    for _, expression in expressions_of(source):
        for label, operator, values in SELECTOR.findall(expression):
            for value in values.split("|") if "~" in operator else [values]:
                has_it = label in ("job", "instance") or f'{label}="{value}"' in text
                assert has_it, f'/metrics has no {label}="{value}": {expression}'


def check_drive(prometheus, scans, all_scans, dropped_before=0):
    """Prometheus has the scans that were sent: `scans` to this daemon, `all_scans` since ndt-web runs. On a busy machine
    some are dropped, and answered: they have no state and no time in the matcher. Returns how many, with those before."""
    dropped = 'sum(ndtd_drops_total{queue="scans"})'
    prometheus.expect("sum(ndtd_scans_total)", scans)
    prometheus.expect("ndtd_received_scans_total", scans)
    prometheus.expect(f"sum(ndtd_localisation_scans_total) + {dropped}", scans)
    prometheus.expect(f'sum(ndtd_scans_total{{outcome="dropped"}}) - {dropped}', 0)
    prometheus.expect("ndt_web_results_total", all_scans)
    for series in ('ndtd_scan_latency_seconds_count{outcome!="dropped"}', 'ndtd_scan_stage_seconds_count{stage="align"}'):
        prometheus.expect(f"sum({series}) + {dropped_before} + {dropped}", all_scans)
    for rank in (0.5, 0.99):
        seconds = prometheus.value(f"histogram_quantile({rank}, sum by (le) (ndtd_scan_latency_seconds_bucket))")
        assert 0 < seconds <= 0.5, seconds
    recent = prometheus.value("histogram_quantile(0.9, sum by (le) (rate(ndtd_scan_iterations_bucket[5m])))")
    assert 0 < recent <= 50, recent
    return dropped_before + prometheus.value(dropped)


def check_points(web, prometheus):
    """The daemon makes points for viewers only while a browser listens."""
    prometheus.expect('ndtd_subscribers{socket="points"}', 0)
    prometheus.expect("ndtd_points_published_total", 0)
    with urllib.request.urlopen(web.url + "api/events", timeout=60):
        prometheus.expect("ndt_web_event_streams", 1)
        prometheus.expect('ndtd_subscribers{socket="points"}', 1)
    prometheus.expect("ndt_web_event_streams", 0)


def check_rules(source, prometheus):
    def is_evaluated():
        groups = prometheus.ask("/api/v1/rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        assert not [rule for rule in rules if rule["health"] == "err"], rules
        return len(rules) if rules and all(rule["health"] == "ok" for rule in rules) else 0

    count = wait_until("the rules are evaluated", is_evaluated)
    assert count == len(alert_expressions(source)), count
    # On a busy machine the drive ended long ago.
    firing = prometheus.ask("/api/v1/query", query='ALERTS{alertstate="firing",alertname!="NdtdNoResults"}')["result"]
    assert not firing, firing


def check_panels(source, prometheus, metrics):
    """Every query of the dashboard and the docs is valid and, unless it selects by value, has a result."""
    for title, expression in [*panel_expressions(source), *doc_expressions(source)]:
        may_be_empty = re.search(r"[<>]=? \d", expression) or NOT_IN_DRIVE & set(names_in(expression, metrics))
        assert prometheus.values(expression) or may_be_empty, f"{title}: no data: {expression}"


def play(prometheus, drive, bin_dir, folder):
    """Sends the drive once the daemon answers and ndt-web has subscribed to its results."""
    prometheus.expect("ndtd_up", 1)
    prometheus.expect('ndtd_subscribers{socket="poses"}', 1)
    Sender(bin_dir, folder, drive.bag).start("--rate", "1").wait()


def live(source, bin_dir):
    for program in ("prometheus", "promtool"):
        if not shutil.which(program):
            print(f"skipped: no {program} (Debian: prometheus)")
            return 77
    metrics = metrics_of(bin_dir)
    programs = []
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as name:
        folder = pathlib.Path(name)
        drive = Drive(bin_dir, folder, "--scans", SCANS)
        try:
            web = Web(bin_dir, folder).start()
            programs.append(web)
            prometheus = Prometheus(folder, source, web).start()
            programs.append(prometheus)
            prometheus.expect("up", 1)
            prometheus.expect("ndtd_up", 0)
            daemon = Daemon(bin_dir, folder, drive.map, **{"live.queue_depth": 8, "integrity.risk": 1e-5}).start()
            programs.append(daemon)
            play(prometheus, drive, bin_dir, folder)
            dropped = check_drive(prometheus, SCANS, SCANS)
            missing = set(metrics) - check_formats(web, metrics)
            assert missing == NOT_IN_DRIVE, missing ^ NOT_IN_DRIVE
            check_points(web, prometheus)
            check_label_values(source, web)
            check_panels(source, prometheus, metrics)
            check_rules(source, prometheus)

            daemon.end()
            prometheus.expect("ndtd_up", 0)
            prometheus.expect('ALERTS{alertname="NdtdAway",alertstate="firing"}', 1)
            assert math.isnan(prometheus.value("sum(ndtd_scans_total)")), "values of a daemon that is away"
            daemon.start()
            play(prometheus, drive, bin_dir, folder)
            prometheus.expect("ndt_web_daemon_restarts_total", 1)
            check_drive(prometheus, SCANS, 2 * SCANS, dropped)
            # What the first daemon counted is not lost: Prometheus sees that the counter began anew.
            prometheus.expect("resets(ndtd_received_scans_total[10m])", 1)
            for program in (web, daemon):
                code = program.end()
                assert code == 0, f"{program.name} ends with {code}: {program.log()[-2000:]}"
        finally:
            for program in reversed(programs):
                program.end()
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["tables", "live"])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("bin", type=pathlib.Path)
    arguments = parser.parse_args()
    return globals()[arguments.what](arguments.source.resolve(), arguments.bin.resolve())


if __name__ == "__main__":
    sys.exit(main())
