"""Pages in a real browser: sorting, filtering, narrow windows, dark themes, and hostile names that do not run."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver import Keys
from selenium.webdriver.common.by import By

from dml_tile import check_model
from dml_tile.back_ends.described_node import NodePlace
from dml_tile.back_ends.placement import Placement, Reason
from dml_tile.checks.result import CheckedFile
from dml_tile.directml.targets import Target
from dml_tile.findings import unreadable
from dml_tile.readers.item import Item, item_of
from dml_tile.readers.model_tile import DIALECTS, TileNode
from dml_tile.reports.levels import levels_html
from tests.helpers.packages import npm_file
from tests.helpers.paths import EXAMPLES
from tests.helpers.report_pages import HOSTILE, LONG, MIDDLE, NEW, OLD, SHORT, WRONG, checked, page, placed_model

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
MIN_TARGET = 24  # pixels, by WCAG 2.2
SECONDS = 60  # for a page or a script, on a machine however slow

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not CHROMIUM or not DRIVER, reason="needs chromium and chromedriver on the PATH"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Yield a browser with a profile of its own that can reach no network."""
    from selenium.webdriver import Chrome, ChromeOptions  # half a second, which no other worker is to spend
    from selenium.webdriver.chrome.service import Service

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


AXE = npm_file("axe-core/axe.min.js")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of a page with five tiles at one to three targets, one of them with a hostile name."""
    tiles = [
        checked(LONG, OLD, MIDDLE, NEW, source="b.json"),
        checked(SHORT, OLD, source="tile10.json"),
        checked(SHORT, OLD, source="tile9.json"),
        checked(WRONG, NEW, source="a.json"),
        checked(Item(f"/{HOSTILE}", WRONG.desc), NEW, source=HOSTILE),
    ]
    problems = [unreadable("", HOSTILE, source=HOSTILE)]
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(tiles, problems, [CheckedFile(HOSTILE, is_model=True)]), "utf-8")
    return path.as_uri()


@pytest.fixture
def opened(browser: Chrome, report: str) -> Iterator[Chrome]:
    """Yield the browser with the untouched page on a wide screen; later tests get its first settings again."""
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.set_window_size(1280, 900)
    browser.get(report)
    yield browser
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def shown(browser: Chrome, column: int = 1) -> list[str]:
    """Return the texts of a column of the tiles that are not hidden; the first begins with their sources."""
    cells = browser.find_elements(By.CSS_SELECTOR, f"#operators tbody tr > :nth-child({column})")
    return ["".join(cell.text.splitlines()[:1]).partition("#")[0] for cell in cells if cell.is_displayed()]


def with_findings(browser: Chrome) -> list[str]:
    """Return the sources of the tiles whose findings are not hidden."""
    heads = browser.find_elements(By.CSS_SELECTOR, "#findings summary h3")
    return [head.text.partition("#")[0] for head in heads if head.is_displayed()]


def head(browser: Chrome, column: str, table: str = "operators") -> WebElement:
    heads = browser.find_elements(By.CSS_SELECTOR, f"#{table} thead th")
    return next(one for one in heads if one.text.startswith(column))


def button(browser: Chrome, column: str) -> WebElement:
    return head(browser, column).find_element(By.TAG_NAME, "button")


def field(browser: Chrome, selector: str) -> WebElement:
    return browser.find_element(By.CSS_SELECTOR, f"#filters {selector}")


def logged(browser: Chrome, log: str) -> list[str]:
    """Return the new entries of a log since the last call."""
    return [entry["message"] for entry in browser.get_log(log)]  # type: ignore[no-untyped-call]


def findings(browser: Chrome) -> list[WebElement]:
    return browser.find_elements(By.CLASS_NAME, "finding")


BEFORE = ["b.json", "a.json", HOSTILE, "tile10.json", "tile9.json"]


def test_a_click_on_a_head_sorts_another_the_other_way_and_its_sign_shows_it(opened: Chrome) -> None:
    sign = "return getComputedStyle(arguments[0], '::after').content"
    assert shown(opened) == BEFORE
    signs = [opened.execute_script(sign, button(opened, "Operator"))]
    ascending = [HOSTILE, "a.json", "b.json", "tile9.json", "tile10.json"]
    for order, expected in (("ascending", ascending), ("descending", ascending[::-1])):
        button(opened, "Operator").click()
        assert shown(opened) == expected
        assert head(opened, "Operator").get_attribute("aria-sort") == order
        signs.append(opened.execute_script(sign, button(opened, "Operator")))
    assert len(set(signs)) == 3


def test_the_keyboard_sorts_too(opened: Chrome) -> None:
    button(opened, "windows-10-2004").send_keys(Keys.ENTER)
    assert [word for word in shown(opened, 2) if word] == ["✕ refused", "✓ accepted", "✓ accepted"]
    button(opened, "Lowest level").send_keys(Keys.SPACE)
    assert shown(opened, 5) == ["1_0", "1_0", "4_1", "none", "none"]
    assert head(opened, "windows-10-2004").get_attribute("aria-sort") is None


def test_links_lead_to_sections_and_open_the_findings_of_a_tile(opened: Chrome) -> None:
    opened.find_element(By.CSS_SELECTOR, "nav a[href='#operators']").click()
    assert opened.current_url.endswith("#operators")
    field(opened, "button").click()
    opened.find_element(By.LINK_TEXT, "b.json#/long").click()
    (finding, *_) = (one for one in findings(opened) if one.is_displayed())
    assert "DML-TILE-DataType-level" in finding.text


def test_the_other_tables_are_sorted_by_themselves(opened: Chrome) -> None:
    head(opened, "Rule", "rules-broken").find_element(By.TAG_NAME, "button").click()
    cells = opened.find_elements(By.CSS_SELECTOR, "#rules-broken tbody th")
    assert [cell.text for cell in cells] == ["DML-TILE-DataType-level", "DML-TILE-RepeatsCount"]
    assert shown(opened) == BEFORE


def test_a_verdict_its_target_and_a_rule_can_be_chosen(opened: Chrome) -> None:
    from selenium.webdriver.support.select import Select

    field(opened, "input[value=accepted]").click()
    assert shown(opened) == ["b.json", "tile10.json", "tile9.json"]
    assert with_findings(opened) == ["b.json"]
    assert field(opened, "[role=status]").text == "3 of 5 shown"
    field(opened, "input[value='']").click()
    assert shown(opened) == BEFORE
    assert with_findings(opened) == ["b.json", "a.json", HOSTILE]
    field(opened, "input[value=refused]").click()
    Select(field(opened, "select[name=target]")).select_by_value("6_4")
    assert shown(opened) == ["a.json", HOSTILE]
    Select(field(opened, "select[name=target]")).select_by_value("windows-11-21h2 (4_0)")
    assert shown(opened) == ["b.json"]
    Select(field(opened, "select[name=rule]")).select_by_value("DML-TILE-RepeatsCount")
    assert shown(opened) == []


def test_a_text_is_searched_for_anywhere(opened: Chrome) -> None:
    text = field(opened, "input[type=search]")
    text.send_keys("TILE9", Keys.ENTER)  # which stays on the page
    assert shown(opened) == ["tile9.json"]
    text.clear()
    text.send_keys("needs dml_feature_level_4_1")
    assert shown(opened) == ["b.json"]
    text.send_keys(" no such text")
    assert shown(opened) == []
    assert field(opened, "[role=status]").text == "0 of 5 shown"


def test_findings_are_opened_and_closed_all_at_once(opened: Chrome) -> None:
    toggle = field(opened, "button")
    assert toggle.text == "Close all"
    toggle.click()
    assert not any(finding.is_displayed() for finding in findings(opened))
    assert toggle.text == "Open all"
    toggle.click()
    assert all(finding.is_displayed() for finding in findings(opened))


def test_hostile_names_are_shown_and_not_run_and_an_inline_handler_would_not_run_either(opened: Chrome) -> None:
    title = "Operators on DirectML: 1 file not read; 5 operators: 3 refused, 2 accepted"
    assert opened.title == title
    assert opened.find_elements(By.TAG_NAME, "img") == []
    assert len(opened.find_elements(By.TAG_NAME, "script")) == 1
    assert HOSTILE in opened.find_element(By.ID, "not-read").text
    opened.execute_script("document.body.insertAdjacentHTML('beforeend', arguments[0])", HOSTILE)
    assert opened.title == title
    assert "Content Security Policy" in " ".join(logged(opened, "browser"))


def test_the_page_logs_no_error_and_requests_no_other_file(browser: Chrome, report: str) -> None:
    browser.get("about:blank")
    logged(browser, "browser")
    logged(browser, "performance")
    browser.get(report)
    field(browser, "input[value=refused]").click()
    button(browser, "Operator").click()
    messages = [json.loads(entry)["message"] for entry in logged(browser, "performance")]
    requests = [one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    assert requests == [report]
    assert logged(browser, "browser") == []


@pytest.mark.parametrize("width", [320, 390, 800, 961, 1280])
def test_the_page_fits_its_window_and_no_cell_lies_on_another(opened: Chrome, width: int) -> None:
    set_width(opened, width)
    opened.refresh()
    whole, seen = opened.execute_script(
        "const {scrollWidth, clientWidth} = document.documentElement; return [scrollWidth, clientWidth]"
    )
    assert whole == seen
    overlaps = opened.execute_script(
        "const cells = '#operators .verdict, #operators th > a, #operators th > bdi, #operators th > code';"
        "const boxes = [...document.querySelectorAll(cells)].flatMap(one => [...one.getClientRects()]);"
        "return boxes.filter((a, i) => boxes.slice(i + 1).some(b => a.left < b.right - 1 && b.left < a.right - 1 "
        "&& a.top < b.bottom - 1 && b.top < a.bottom - 1)).length"
    )
    assert overlaps == 0


def test_a_table_of_five_targets_fits_1200_pixels(browser: Chrome, tmp_path: Path) -> None:
    targets = (OLD, MIDDLE, *map(Target.parse, ("5_0", "6_2", "6_4")))
    dynamic = item_of(TileNode("number", DIALECTS["ONNX Tile-13"], "int64", ("batch", 16), (None, 1)))
    path = tmp_path / "five.html"
    path.write_text(page([checked(dynamic, *targets), checked(LONG, *targets)]), "utf-8")
    set_width(browser, 1200)
    browser.get(path.as_uri())
    script = "const table = document.querySelector('#operators .wide'); return [table.scrollWidth, table.clientWidth]"
    whole, seen = browser.execute_script(script)
    assert whole == seen


def test_without_scripts_all_can_be_read(opened: Chrome) -> None:
    opened.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    opened.refresh()
    assert shown(opened) == BEFORE
    assert not opened.find_element(By.ID, "filters").is_displayed()
    assert opened.find_elements(By.CSS_SELECTOR, "th button") == []
    assert all(finding.is_displayed() for finding in findings(opened))


def test_findings_that_are_closed_are_printed(opened: Chrome) -> None:
    field(opened, "button").click()
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert all(finding.size["height"] > 0 for finding in findings(opened))
    assert not opened.find_element(By.ID, "filters").is_displayed()
    assert base64.b64decode(opened.print_page()).startswith(b"%PDF")


def set_theme(browser: Chrome, theme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def set_width(browser: Chrome, width: int) -> None:
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


@pytest.fixture(scope="module")
def pages(report: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the addresses of a page of each kind."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "levels.html").write_text(levels_html(), "utf-8")
    fates = {
        Placement.DIRECTML: "",
        Placement.CPU: "ORT-CPU-version",
        Placement.NONE: "ORT-NODE-domain",
        Placement.UNKNOWN: "ORT-UNKNOWN-type",
        Placement.GONE: "",
    }
    nodes = [
        (NodePlace(str(i), HOSTILE, "", f"Op{i}", 1), Reason(placement, rule, rule and HOSTILE, "export anew"))
        for i, (placement, rule) in enumerate(fates.items())
    ]
    placed = [placed_model(nodes, NEW, Target.parse("onnxruntime-directml-1.24"), OLD, source=HOSTILE)] * 2
    (folder / "nodes.html").write_text(page([], nodes=placed), "utf-8")
    described = check_model(EXAMPLES / "models" / "classifier.onnx", "windows-11-23h2", via="ort").nodes
    assert described
    (folder / "described.html").write_text(page([], nodes=[described]), "utf-8")
    names = ("levels", "nodes", "described")
    return {"report": report} | {name: (folder / f"{name}.html").as_uri() for name in names}


@pytest.mark.parametrize("kind", ["report", "levels", "nodes", "described"])
def test_each_page_has_a_dark_theme_and_one_main_heading(opened: Chrome, pages: dict[str, str], kind: str) -> None:
    opened.get(pages[kind])
    background = "return getComputedStyle(document.body).backgroundColor"
    light = opened.execute_script(background)
    set_theme(opened, "dark")
    assert opened.execute_script(background) != light
    assert len(opened.find_elements(By.TAG_NAME, "h1")) == 1


@pytest.mark.skipif(AXE is None, reason="needs npm's axe-core in a folder that the variable NODE_PATH names")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("kind", ["report", "levels", "nodes", "described"])
def test_axe_finds_nothing(opened: Chrome, pages: dict[str, str], kind: str, width: int, theme: str) -> None:
    assert AXE
    set_theme(opened, theme)
    set_width(opened, width)
    opened.get(pages[kind])
    opened.execute_script(AXE.read_text("utf-8"))
    violations = opened.execute_async_script(
        "const done = arguments[0]; axe.run({rules: {'target-size': {enabled: true}}}).then(found => "
        "done(found.violations.flatMap(one => one.nodes.map(node => `${one.id}: ${node.html}`))))"
    )
    assert violations == []


def test_controls_are_large_enough_for_a_finger(opened: Chrome) -> None:
    pressed = opened.find_elements(By.CSS_SELECTOR, "button, summary, select, input, nav a, #operators a")
    heights = {one.get_attribute("outerHTML"): one.rect["height"] for one in pressed if one.is_displayed()}
    small = [html for html, height in heights.items() if height < MIN_TARGET and "radio" not in str(html)]
    assert small == []
    labels = opened.find_elements(By.CSS_SELECTOR, "fieldset label")
    assert all(label.rect["height"] >= MIN_TARGET for label in labels)


# The nodes of models


@pytest.mark.parametrize("width", [320, 390, 1200])
def test_the_nodes_fit_the_window_and_bars_their_numbers(opened: Chrome, pages: dict[str, str], width: int) -> None:
    set_width(opened, width)
    opened.get(pages["nodes"])
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width
    lengths = "return [...document.querySelector('.bar').children].map(one => one.getBoundingClientRect().width)"
    found: list[float] = opened.execute_script(lengths)
    assert len(found) == 5 + 1, "the placements, and the node on DirectML, accepted"
    assert max(found) - min(found) < 1 < min(found)
    assert opened.title == "Operators on DirectML: 2 models placed, 2 failing at some target"


@pytest.mark.parametrize("width", [390, 1200])
def test_a_second_bar_parts_the_nodes_on_directml_by_their_verdicts(
    opened: Chrome, pages: dict[str, str], width: int
) -> None:
    set_width(opened, width)
    opened.get(pages["described"])
    assert opened.execute_script("return document.documentElement.scrollWidth") <= width
    found: list[list[float]] = opened.execute_script(
        "return [...document.querySelector('.bar').children].map(one => one.getBoundingClientRect())"
        ".map(({left, width, top}) => [left, width, top])"
    )
    on_directml, on_the_cpu, *judged = found
    assert sum(width for _, width, _ in judged) == pytest.approx(on_directml[1], abs=1)
    assert judged[0][0] == pytest.approx(on_directml[0], abs=1)
    assert all(top > on_the_cpu[2] for _, _, top in judged)
    fills = "return [...document.querySelectorAll('.bar rect')].map(one => getComputedStyle(one).fill)"
    assert "rgb(0, 0, 0)" not in opened.execute_script(fills), "each has a colour"


def test_refused_operators_are_chosen(opened: Chrome, pages: dict[str, str]) -> None:
    opened.get(pages["described"])
    opened.find_element(By.CSS_SELECTOR, "#node-filters input[value='on DirectML, refused']").click()
    cells = opened.find_elements(By.CSS_SELECTOR, "#departures-from-directml tbody th")
    assert [cell.text.split()[0] for cell in cells if cell.is_displayed()] == ["Softmax-13"]


def test_departures_are_chosen_by_text_placement_target_and_rule(opened: Chrome, pages: dict[str, str]) -> None:
    from selenium.webdriver.support.select import Select

    opened.get(pages["nodes"])
    form = opened.find_element(By.ID, "node-filters")

    def operators() -> list[str]:
        cells = opened.find_elements(By.CSS_SELECTOR, "#departures-from-directml tbody th")
        return sorted({cell.text.split()[0] for cell in cells if cell.is_displayed()})

    assert operators() == ["Op1-1", "Op2-1", "Op3-1", "the"]
    form.find_element(By.CSS_SELECTOR, "input[value='on the CPU']").click()
    assert operators() == ["Op1-1"]
    Select(form.find_element(By.NAME, "target")).select_by_value("windows-10-2004 (2_0)")
    assert operators() == []
    form.find_element(By.CSS_SELECTOR, "input[value='']").click()
    Select(form.find_element(By.NAME, "target")).select_by_value("")
    Select(form.find_element(By.NAME, "rule")).select_by_value("ORT-UNKNOWN-type")
    assert operators() == ["Op3-1"]
    form.find_element(By.NAME, "text").send_keys("nothing has this")
    assert operators() == []
    assert "0 of 8 shown" in form.text


# The page of levels


@pytest.fixture
def levels(opened: Chrome, pages: dict[str, str]) -> Chrome:
    opened.get(pages["levels"])
    return opened


def operators_shown(browser: Chrome) -> list[str]:
    """Return the names of the operators that are not hidden."""
    script = "return [...document.querySelectorAll('section.operator')].filter(one => !one.hidden).map(one => one.id)"
    names: list[str] = browser.execute_script(script)
    return names


def test_every_operator_has_a_table_and_an_anchor(levels: Chrome) -> None:
    assert len(operators_shown(levels)) == 177
    bare = "return [...document.querySelectorAll('section.operator')].filter(one => !one.querySelector('table')).length"
    assert levels.execute_script(bare) == 0
    levels.get(levels.current_url.partition("#")[0] + "#TILE")
    assert -1 < levels.execute_script("return document.getElementById('TILE').getBoundingClientRect().top") < 400
    assert "1_0 (windows-10-1903) documented" in levels.find_element(By.ID, "TILE").text


@pytest.mark.parametrize(
    ("words", "first"), [("gather", "GATHER"), ("GATHER INT64", "GATHER"), ("tile", "TILE"), ("resample3", "RESAMPLE3")]
)
def test_operators_are_searched_by_name_and_type_with_the_keyboard(levels: Chrome, words: str, first: str) -> None:
    levels.find_element(By.TAG_NAME, "body").click()
    field = levels.find_element(By.CSS_SELECTOR, "input[type=search]")
    field.send_keys(words)
    names = operators_shown(levels)
    assert first in names
    assert len(names) < 40
    assert levels.find_element(By.CSS_SELECTOR, "[role=status]").text == f"{len(names)} of 177 shown"
    field.send_keys(Keys.ESCAPE)
    assert len(operators_shown(levels)) == 177


def test_a_type_is_searched_as_a_whole_word_and_nonsense_finds_nothing(levels: Chrome) -> None:
    field = levels.find_element(By.CSS_SELECTOR, "input[type=search]")
    field.send_keys("int4")
    assert set(operators_shown(levels)) == {"QUANTIZE", "DEQUANTIZE"} & set(operators_shown(levels)) != set()
    field.send_keys("x")
    assert operators_shown(levels) == []


def test_an_anchor_of_an_operator_that_is_not_found_shows_it(levels: Chrome) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    levels.find_element(By.CSS_SELECTOR, "input[type=search]").send_keys("gather")
    levels.execute_script("location.hash = '#TILE'")
    WebDriverWait(levels, SECONDS).until(lambda browser: "TILE" in operators_shown(browser))


def test_the_page_of_levels_makes_no_error_asks_for_nothing_and_fits_a_phone(levels: Chrome) -> None:
    logged(levels, "browser")
    set_width(levels, 390)
    levels.refresh()
    assert logged(levels, "browser") == []
    assert levels.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert levels.execute_script("return document.documentElement.scrollWidth") <= 390
    assert len(levels.page_source) < 1_000_000


def test_the_tables_of_windows_and_packages_fit_1000_pixels(levels: Chrome) -> None:
    set_width(levels, 1000)
    wide = "return [...document.querySelectorAll('.wide:has(.matrix)')].map(one => one.scrollWidth - one.clientWidth)"
    assert levels.execute_script(wide) == [0, 0]


def test_the_page_of_levels_is_whole_without_scripts_and_on_paper(levels: Chrome) -> None:
    levels.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    levels.refresh()
    assert not levels.find_element(By.ID, "filters").is_displayed()
    assert levels.find_element(By.ID, "UNFOLD").is_displayed()
    levels.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert levels.find_element(By.ID, "UNFOLD").is_displayed()
