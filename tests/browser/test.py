"""Opens each kind of HTML report in Chromium, uses it, and keeps screenshots.

    tests/browser/test.py target/debug/hotset target/browser
"""

import json
import os
import pathlib
import subprocess
import sys

from chromium import Chromium

BINARY, OUT = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
SHARED = pathlib.Path(os.environ.get("HOTSET_SHARED", "../shared"))
VIEWS = [(1600, "light"), (1600, "dark"), (400, "light"), (400, "dark")]
MOST_BYTES, MOST_SECONDS = 5 << 20, 2.0

PLANTED = """name = "=1+1 <script>document.title = 'run'</script>"
kind = "pcie"
description = "planted"
source = "planted"
date = "today"
[cost.bandwidth]
gib_s = 20
"""

# Every mark of every chart lies inside its picture, and there are some.
MARKS = """[...document.querySelectorAll('section.figure')].map((section) => {
  const svgs = [...section.querySelectorAll('.chart svg')], svg = svgs.at(-1);
  if (!svg) return `${section.id}: no picture`;
  const frame = svg.getBoundingClientRect(), groups = ['line', 'dot', 'bar', 'cell', 'rule'];
  const all = groups.flatMap((name) => [...svg.querySelectorAll(`g[aria-label=${name}] > *, path[aria-label=${name}]`)]);
  if (!all.length) return `${section.id}: no marks`;
  const outside = all.filter((mark) => {
    const box = mark.getBoundingClientRect();
    return !Number.isFinite(box.x) || box.left < frame.left - 6 || box.right > frame.right + 6 || box.top < frame.top - 6 || box.bottom > frame.bottom + 6;
  });
  if (outside.length) return `${section.id}: ${outside.length} of ${all.length} marks outside`;
  return /NaN|undefined/.test(svg.outerHTML) ? `${section.id}: NaN` : null;
}).filter(Boolean)"""


def most_policies():
    """40 settings of policies that run on any trace."""
    simple = ["lru", "fifo", "clock", "lfu", "sieve", "s3-fifo", "arc", "2q", "slru", "mru", "random", "lirs"]
    listed = json.loads(subprocess.check_output([BINARY, "policies", "--format", "json"]))
    names = [one["name"] for one in listed["policies"] if one["needs"] == "nothing"]
    kept = [name for name in names if name in simple] + [name for name in names if name not in simple]
    variants = [f"{name}+{guard}" for guard in ("tinylfu", "bypass") for name in ("lru", "fifo", "clock", "lfu", "sieve", "arc", "2q")]
    return (kept + [f"lru-k:k={k}" for k in range(3, 9)] + variants)[:40]


def reports():
    """Name and command of each report."""
    link = OUT / "planted.toml"
    link.write_text(PLANTED)
    priced = ["--machine", "h200", "--dense-bytes", "20MiB"]
    yield "compare", ["compare", *priced, "--link", f"h200-pcie,h200-nvlink,{link}", "--prefetch", "popularity"]
    yield "sweep", ["sweep", "--policy", "lru,lfu,td-table,belady"]
    yield "replay", ["replay", "--policy", "lru", "--capacity", "25%", *priced]
    yield "plan", ["plan", "--model", "gpt-oss-120b", "--machine", "rtx-4090"]
    yield "what-if", ["plan", "--model", "gpt-oss-120b", "--machine", "rtx-4090",
                      "--vary", "gpu-memory=16,24,32,48", "--vary", "users=1,4,16"]
    yield "experiment", ["experiment", "semantic"]
    few = OUT / "few.hst"
    subprocess.run([BINARY, "trace", "slice", "--sequences", "0..3", "-o", few], check=True, stdout=subprocess.DEVNULL)
    yield "wide", ["compare", few, "--policy", ",".join(most_policies()), "--capacity", "3%..96%:3%", "--link", "h200-pcie"]
    live, links = SHARED / "data/live", SHARED / "data/h200-links/links.csv"
    if live.is_dir() and links.is_file():
        yield "verify-live", ["verify-live", live / "points.csv", "--links", links, "--traces", live]
    else:
        print("SKIPPED: verify-live, without ../shared")


def look(browser, name, path):
    """No error, marks inside, no sideways scrolling, at every width and in both schemes."""
    for width, scheme in VIEWS:
        seconds = browser.open(path, width, scheme)
        told = browser.errors + browser.evaluate(MARKS)
        if browser.evaluate("document.documentElement.scrollWidth") > width:
            told.append("wider than the window")
        if browser.evaluate("document.title") == "run":
            told.append("a planted script ran")
        if not browser.evaluate("document.querySelectorAll('section.figure').length"):
            told.append("no figure")
        if seconds > MOST_SECONDS:
            told.append(f"takes {seconds:.2f} s to open")
        browser.screenshot(OUT / f"{name}-{width}-{scheme}.png")
        print(f"{name:<12} {width:>5} {scheme:<6} {seconds:.2f} s  {path.stat().st_size / 1024:.0f} KiB")
        assert not told, f"{name} at {width}, {scheme}: {told}"


CHART = "document.querySelector('#figure-cost .chart').innerHTML"
FIRST = "[...document.querySelectorAll('#table-rows tbody tr')].filter((row) => !row.hidden).map((row) => row.cells[10].textContent)"


def press(browser, path):
    """Switch, sort and filter, by the mouse and by keys alone."""
    browser.open(path, 1600, "light")
    switch = "document.querySelector('[data-switch=link]')"
    chosen = f"{switch}.querySelector(':checked').value"
    before, link = browser.evaluate(CHART), browser.evaluate(chosen)
    browser.click(f"{switch}.querySelectorAll('label')[1]")
    assert browser.evaluate(chosen) != link, "a click does not switch the link"
    assert browser.evaluate(CHART) != before, "a click on the link leaves the chart"
    browser.evaluate(f"{switch}.querySelector(':checked').focus()")
    browser.key("ArrowLeft", 37)
    assert browser.evaluate(chosen) == link, "an arrow does not switch the link"
    assert browser.evaluate(CHART) == before, "the chart does not come back"

    ascending, numbers = browser.evaluate(FIRST), lambda texts: [float(text.replace(",", "")) for text in texts]
    head = "document.querySelector('#table-rows th:nth-child(11) button')"
    browser.click(head)
    assert numbers(browser.evaluate(FIRST)) == sorted(numbers(ascending)), "a click does not sort"
    browser.evaluate(f"{head}.focus()")
    browser.key("Enter", 13, "\r")
    descending = sorted(numbers(ascending), reverse=True)
    assert numbers(browser.evaluate(FIRST)) == descending, "Enter does not sort the other way"

    browser.evaluate("document.querySelector('#table-rows').closest('section').querySelector('input').focus()")
    browser.write("belady")
    left = browser.evaluate("[...document.querySelectorAll('#table-rows tbody tr')].filter((row) => !row.hidden).map((row) => row.cells[0].textContent)")
    assert left and set(left) == {"belady"}, f"the filter leaves {left}"

    legend = "document.querySelector('#figure-cost .legend button')"
    before = browser.evaluate(CHART)
    browser.click(legend)
    assert browser.evaluate(CHART) != before, "a click on a series does not dim it"
    assert not browser.errors, browser.errors
    # Tab alone comes to every control.
    browser.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(60):
        browser.key("Tab", 9)
        reached.add(browser.evaluate("document.activeElement.tagName + (document.activeElement.type ?? '')"))
    assert {"INPUTradio", "BUTTONbutton", "INPUTsearch"} <= reached, reached


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    made = {}
    for name, command in reports():
        made[name] = OUT / f"{name}.html"
        subprocess.run([BINARY, *command, "--format", "html", "-o", made[name]], check=True, stderr=subprocess.DEVNULL)
        size = made[name].stat().st_size
        assert size < MOST_BYTES, f"{name} has {size} bytes"
    browser = Chromium()
    try:
        for name, path in made.items():
            look(browser, name, path)
        press(browser, made["compare"])
    finally:
        browser.close()
    print(f"{len(made)} reports, {len(VIEWS)} views each: screenshots in {OUT}")


if __name__ == "__main__":
    main()
