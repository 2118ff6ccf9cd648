#!/usr/bin/env python3
"""The page of a real run in a real Chromium: curves, rows and marks are there, in light and dark; it asks
no other host for anything, and says when the run is over.

  tests/http/page_test.py --bin DIR [--screenshots DIR]     --bin: the folder of the programs

Exits with 77, saying so, where there is no chromium that starts.
"""
import argparse
import contextlib
import pathlib
import shutil
import sys

import chromium
import training
import ctest

CHARTS = ("loss", "accuracy", "rate", "lr", "parts")


def check(what, holds):
    if not holds:
        raise AssertionError(what)
    print(f"ok: {what}")


def colors_of(rows):
    return {row[x:x + 3] for row in rows[::4] for x in range(0, len(row), 12)}


def brightness(rows):
    return sum(sum(row) / len(row) for row in rows[::8]) / len(rows[::8])


def text_of(browser, selector):
    return browser.evaluate(f"document.querySelector({selector!r}).innerText")


def check_rows(browser):
    browser.until("document.querySelectorAll('#workers tr').length === 3"
                  " && document.querySelectorAll('#servers tr').length === 3"
                  " && [...document.querySelectorAll('#events tr')].some("
                  "row => row.innerText.includes('checkpoint of round'))")
    workers, figures = text_of(browser, "#workers"), text_of(browser, "#figures")
    check("each worker has a row", "worker-0" in workers and "worker-1" in workers)
    check("the job has its name", text_of(browser, "#job") == "watched")
    check("figures are there", all(name in figures for name in ("loss", "epoch", "validation accuracy")))
    check("nothing is undefined", not any(word in text_of(browser, "body")
                                          for word in ("undefined", "NaN", "[object")))


def check_curves(browser):
    browser.until("charts.every(chart => chart.data.datasets.every(set => set.data.length >= 2))"
                  " && charts[0].marks.some(mark => mark.kind === 'checkpoint')")
    for name in CHARTS:
        # What is more blue than red, without the legend.
        drawn = browser.evaluate(f"""(() => {{
            const {{ctx, chartArea: area}} = charts.find(chart => chart.canvas.id === '{name}');
            const pixels = ctx.getImageData(area.left, area.top, area.width, area.height).data;
            let drawn = 0;
            for (let i = 0; i < pixels.length; i += 4) {{
              if (pixels[i + 3] > 127 && pixels[i + 2] - pixels[i] > 60) ++drawn;
            }}
            return drawn;
        }})()""")
        check(f"the chart {name} has a curve ({drawn} pixels of blue)", drawn > 50)


def check_looks(browser, folder):
    looks = {}
    for scheme in ("light", "dark"):
        browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.until(f"matchMedia('(prefers-color-scheme: {scheme})').matches")
        # Drawn, and seen, with the new colours.
        browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        png, looks[scheme] = browser.screenshot()
        if folder:
            pathlib.Path(folder, f"{scheme}.png").write_bytes(png)
        check(f"{scheme}: it is not blank", len(colors_of(looks[scheme])) > 20)
    check("light is bright, dark is not",
          brightness(looks["light"]) > 200 and brightness(looks["dark"]) < 60)


def check_numbers(browser):
    wrong = {text: shown for text, wanted in (
        ("digits(3)(250)", "250"), ("digits(3)(0.1)", "0.1"), ("digits(3)(1)", "1"),
        ("digits(3)(1234.5)", "1,235"), ("digits(4)(1000)", "1000"), ("digits(4)(12300)", "12,300"),
        ("digits(4)(1.23e-10)", "1.23e-10"), ("digits(4)(0)", "0"), ("bytes(120 * 2 ** 20)", "120 MiB"),
        ("bytes(1023 * 2 ** 20)", "1,023 MiB"))
        if (shown := browser.evaluate(text)) != wanted}
    check(f"numbers are shown as they are {wrong or ''}", not wrong)


def check_events(browser, url):
    asked = [said["request"]["url"] for method, said in browser.events
             if method == "Network.requestWillBeSent"]
    check("nothing is asked of another host", asked and all(
        each.startswith((url, "about:", "data:")) for each in asked))
    errors = [said for method, said in browser.events
              if method == "Runtime.exceptionThrown"
              or method == "Log.entryAdded" and said["entry"]["level"] == "error"
              and not said["entry"].get("url", "").endswith("/favicon.ico")]
    check(f"no errors {errors or ''}", not errors)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--screenshots", help="a folder for light.png and dark.png")
    options = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        ctest.skip("chromium is missing (Debian has it)")
    with contextlib.ExitStack() as stack:
        try:
            browser = stack.enter_context(chromium.Chromium(program))
        except chromium.DoesNotStart as error:
            ctest.skip(error)
        run = stack.enter_context(training.Training(options.bin))
        run.await_epochs(2)
        url = run.urls["server-0"]
        browser.ask("Emulation.setDeviceMetricsOverride", width=1000, height=700, deviceScaleFactor=1,
                    mobile=False)
        browser.ask("Page.navigate", url=url)
        check_rows(browser)
        check_numbers(browser)
        check_curves(browser)
        check_looks(browser, options.screenshots)
        check_events(browser, url)
        run.stop()
        browser.until("!document.getElementById('connection').hidden")
        said = text_of(browser, "#connection")
        check(f"it says that the run is over: {said!r}", "ended" in said)
    return 0


if __name__ == "__main__":
    sys.exit(main())
