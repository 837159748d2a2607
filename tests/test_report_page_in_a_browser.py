"""The report page in a real browser: sorting, filtering, and what a hostile name does not do."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome, ChromeOptions, Keys
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.select import Select

from dml_tile.checks.source_summary import SourceSummary
from dml_tile.errors import Problem
from dml_tile.readers.json.descriptors import JsonDescriptor
from tests.helpers.report_pages import HOSTILE, LONG, MIDDLE, NEW, OLD, SHORT, WRONG, checked, page

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
SECONDS = 60  # for a page or a script, on a machine however slow

pytestmark = pytest.mark.skipif(
    not CHROMIUM or not DRIVER,
    reason="Debian's chromium and chromium-driver are not installed; .ci/run installs them",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """A browser with a profile of its own that can reach no network."""
    assert CHROMIUM
    assert DRIVER
    options = ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    for argument in (
        "--headless=new",
        "--no-sandbox",  # else it refuses to run as root
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(argument)
    driver = Chrome(options, Service(executable_path=DRIVER))
    driver.set_page_load_timeout(SECONDS)
    driver.set_script_timeout(SECONDS)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a page with five tiles at one to three targets, two of them named by somebody hostile."""
    tiles = [
        checked(LONG, OLD, MIDDLE, NEW, source="b.json"),
        checked(SHORT, OLD, source="tile10.json"),
        checked(SHORT, OLD, source="tile9.json"),
        checked(WRONG, NEW, source="a.json"),
        checked(JsonDescriptor(f"/{HOSTILE}", WRONG.desc), NEW, source=HOSTILE),
    ]
    problems = [(HOSTILE, Problem("", HOSTILE))]
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(tiles, problems, [SourceSummary(HOSTILE, True)]), "utf-8")
    return path.as_uri()


@pytest.fixture
def opened(browser: Chrome, report: str) -> Chrome:
    """The browser, with the page as it is at first, on a wide screen."""
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.set_window_size(1280, 900)
    browser.get(report)
    return browser


def shown(browser: Chrome, column: int = 2) -> list[str]:
    """The texts of a column of the tiles that are not hidden; the second has their sources."""
    cells = browser.find_elements(By.CSS_SELECTOR, f"#tiles tbody tr:first-child td:nth-child({column})")
    return [cell.text for cell in cells if cell.is_displayed()]


def head(browser: Chrome, column: str, table: str = "tiles") -> WebElement:
    heads = browser.find_elements(By.CSS_SELECTOR, f"#{table} th")
    return next(one for one in heads if one.text.startswith(column))


def button(browser: Chrome, column: str) -> WebElement:
    return head(browser, column).find_element(By.TAG_NAME, "button")


def field(browser: Chrome, selector: str) -> WebElement:
    return browser.find_element(By.CSS_SELECTOR, f"#filters {selector}")


def logged(browser: Chrome, log: str) -> list[str]:
    """Returns what a log has got since it was last asked for."""
    return [entry["message"] for entry in browser.get_log(log)]  # type: ignore[no-untyped-call]


BEFORE = ["b.json", "b.json", "b.json", "tile10.json", "tile9.json", "a.json", HOSTILE]


def test_a_click_on_a_head_sorts_and_another_the_other_way(opened: Chrome) -> None:
    assert shown(opened) == BEFORE
    button(opened, "Source").click()
    assert shown(opened) == [HOSTILE, "a.json", "b.json", "b.json", "b.json", "tile9.json", "tile10.json"]
    assert head(opened, "Source").get_attribute("aria-sort") == "ascending"
    button(opened, "Source").click()
    assert shown(opened) == ["tile10.json", "tile9.json", "b.json", "b.json", "b.json", "a.json", HOSTILE]
    assert head(opened, "Source").get_attribute("aria-sort") == "descending"


def test_heads_are_sorted_by_with_the_keyboard(opened: Chrome) -> None:
    button(opened, "Verdict").send_keys(Keys.ENTER)
    assert shown(opened, 1) == ["✕ refused"] * 4 + ["✓ accepted"] * 3
    button(opened, "Lowest level").send_keys(Keys.SPACE)
    assert shown(opened, 5) == ["1_0", "1_0", "4_1", "4_1", "4_1", "none", "none"]
    assert head(opened, "Verdict").get_attribute("aria-sort") is None


def test_what_stands_below_a_row_goes_with_it(opened: Chrome) -> None:
    button(opened, "Source").click()
    bodies = opened.find_elements(By.CSS_SELECTOR, "#tiles tbody")
    assert ["DML-TILE-RepeatsCount" in body.text for body in bodies[:3]] == [True, True, False]
    assert "DML_FEATURE_LEVEL_4_1" in bodies[2].text


def test_the_other_tables_are_sorted_by_themselves(opened: Chrome) -> None:
    head(opened, "Rule", "rules-broken").find_element(By.TAG_NAME, "button").click()
    cells = opened.find_elements(By.CSS_SELECTOR, "#rules-broken td:first-child")
    assert [cell.text for cell in cells] == ["DML-TILE-DataType-level", "DML-TILE-RepeatsCount"]
    assert shown(opened) == BEFORE


def test_a_verdict_can_be_chosen(opened: Chrome) -> None:
    field(opened, "input[value=accepted]").click()
    assert shown(opened, 1) == ["✓ accepted"] * 3
    assert field(opened, "[role=status]").text == "3 of 7 shown"
    field(opened, "input[value='']").click()
    assert shown(opened) == BEFORE


def test_what_is_typed_is_looked_for_anywhere(opened: Chrome) -> None:
    text = field(opened, "input[type=search]")
    text.send_keys("TILE9")
    assert shown(opened) == ["tile9.json"]
    text.clear()
    text.send_keys("needs dml_feature_level_4_1")
    assert shown(opened) == ["b.json", "b.json"]
    text.send_keys(" no such text")
    assert shown(opened) == []
    assert field(opened, "[role=status]").text == "0 of 7 shown"


def test_a_rule_and_a_target_can_be_chosen_together(opened: Chrome) -> None:
    Select(field(opened, "select[name=rule]")).select_by_value("DML-TILE-DataType-level")
    assert shown(opened, 4) == ["windows-10-2004 (2_0)", "windows-11-21h2 (4_0)"]
    Select(field(opened, "select[name=target]")).select_by_value("windows-11-21h2 (4_0)")
    assert shown(opened, 4) == ["windows-11-21h2 (4_0)"]


def test_enter_in_the_filter_stays_on_the_page(opened: Chrome) -> None:
    field(opened, "input[type=search]").send_keys("tile9", Keys.ENTER)
    assert shown(opened) == ["tile9.json"]


def test_findings_are_opened_and_closed_all_at_once(opened: Chrome) -> None:
    toggle = field(opened, "button")
    assert toggle.text == "Close all"
    toggle.click()
    assert not any(finding.is_displayed() for finding in opened.find_elements(By.CLASS_NAME, "finding"))
    assert toggle.text == "Open all"
    toggle.click()
    assert all(finding.is_displayed() for finding in opened.find_elements(By.CLASS_NAME, "finding"))


def test_hostile_names_are_shown_and_not_run(opened: Chrome) -> None:
    assert opened.title == "Tiles on DirectML: 4 refused, 3 accepted"
    assert opened.find_elements(By.TAG_NAME, "img") == []
    assert len(opened.find_elements(By.TAG_NAME, "script")) == 1
    assert HOSTILE in opened.find_element(By.ID, "not-read").text


def test_an_inline_handler_would_not_run_either(opened: Chrome) -> None:
    opened.execute_script("document.body.insertAdjacentHTML('beforeend', arguments[0])", HOSTILE)
    assert opened.title == "Tiles on DirectML: 4 refused, 3 accepted"
    assert "Content Security Policy" in " ".join(logged(opened, "browser"))


def test_the_page_complains_of_nothing_and_asks_for_nothing(browser: Chrome, report: str) -> None:
    browser.get("about:blank")
    logged(browser, "browser")
    logged(browser, "performance")
    browser.get(report)
    field(browser, "input[value=refused]").click()
    button(browser, "Source").click()
    messages = [json.loads(entry)["message"] for entry in logged(browser, "performance")]
    requests = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    assert requests == [report]
    assert logged(browser, "browser") == []


@pytest.mark.parametrize("width", [320, 390, 800, 961, 1280])
def test_the_page_is_no_wider_than_its_window(opened: Chrome, width: int) -> None:
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    opened.refresh()
    whole, seen = opened.execute_script(
        "const {scrollWidth, clientWidth} = document.documentElement; return [scrollWidth, clientWidth]"
    )
    assert whole == seen


def test_without_scripts_all_can_be_read(opened: Chrome) -> None:
    opened.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened.refresh()
        assert shown(opened) == BEFORE
        assert not opened.find_element(By.ID, "filters").is_displayed()
        assert opened.find_elements(By.CSS_SELECTOR, "th button") == []
        assert all(finding.is_displayed() for finding in opened.find_elements(By.CLASS_NAME, "finding"))
    finally:
        opened.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_findings_that_are_closed_are_printed(opened: Chrome) -> None:
    field(opened, "button").click()
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        findings = opened.find_elements(By.CLASS_NAME, "finding")
        assert all(finding.size["height"] > 0 for finding in findings)
        assert not opened.find_element(By.ID, "filters").is_displayed()
        assert base64.b64decode(opened.print_page()).startswith(b"%PDF")
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_an_address_of_a_section_leads_to_it(opened: Chrome) -> None:
    opened.find_element(By.CSS_SELECTOR, "nav a[href='#tiles']").click()
    assert opened.current_url.endswith("#tiles")


def test_the_page_can_be_read_in_the_dark(opened: Chrome) -> None:
    background = "return getComputedStyle(document.body).backgroundColor"
    light = opened.execute_script(background)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        assert opened.execute_script(background) != light
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
