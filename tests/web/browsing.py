"""Questions to a page in a browser: what overflows, what lacks a name, which text is too faint, what jumped."""

from __future__ import annotations

from playwright.sync_api import Page

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PASSWORD = "correct horse battery"

# Layout shifts as browsers count them for CLS: those right after an input are not counted.
COUNT_SHIFTS = """
window.shifted = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
}).observe({type: 'layout-shift', buffered: true});
"""

UNNAMED = """() => [...document.querySelectorAll('input, select, textarea, button, a[href], summary')]
  .filter((each) => each.type !== 'hidden')
  .filter((each) => !(each.labels && each.labels.length) && !each.getAttribute('aria-label')
                    && !each.textContent.trim())
  .map((each) => each.outerHTML.slice(0, 120))"""

# Every element with text of its own, against the nearest opaque background: WCAG 2.2, 1.4.3 (4.5, or 3 for large text).
FAINT = """() => {
  const channels = (color) => (color.match(/[\\d.]+/g) || []).map(Number);
  const light = (color) => {
    const [r, g, b] = channels(color).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (each) => {
    for (let at = each; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      const parts = channels(color);
      if (parts.length === 3 || parts[3] === 1) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  const faint = [];
  for (const each of document.querySelectorAll('body *')) {
    const own = [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const box = each.getBoundingClientRect();
    if (!own || box.width < 2 || box.height < 2 || each.closest('option, datalist')) continue;
    const style = getComputedStyle(each);
    const [one, two] = [light(style.color), light(background(each))];
    const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) faint.push(`${ratio.toFixed(2)} ${each.outerHTML.slice(0, 100)}`);
  }
  return faint;
}"""

FOCUS = """() => {
  const at = document.activeElement, style = getComputedStyle(at);
  return {name: at.getAttribute('name') || '', value: at.getAttribute('value') || '', text: at.textContent.trim(),
          visible: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2};
}"""


def sign_in(page: Page, username: str) -> None:
    """Through the sign-in page, with the keyboard's focus left on the next page."""
    page.goto("/login/")
    page.get_by_label("User name").fill(username)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/")


def tab_to(page: Page, *, name: str = "", text: str = "", value: str = "") -> None:
    """Press Tab until the focus is there; everything on the way must show that it has it."""
    for _ in range(80):
        page.keyboard.press("Tab")
        at = page.evaluate(FOCUS)
        assert at["visible"], f"the focus can't be seen on {at}"
        if (name and at["name"] == name and value in ("", at["value"])) or (text and at["text"] == text):
            return
    raise AssertionError(f"{name or text} can't be reached with Tab")


def overflow(page: Page) -> int:
    """By how many pixels what is on the page is wider than the page."""
    return int(page.evaluate("document.documentElement.scrollWidth - Math.ceil(document.body.offsetWidth)"))
