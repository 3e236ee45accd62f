"""What the drawn pictures share: their colours, which follow the screen, light or dark, and their pieces as text. It
knows nothing of what a picture shows.
"""

import html

LIGHT = {
    "page": "#ffffff", "text": "#1f2328", "faint": "#59636e", "line": "#d1d9e0", "box": "#f1f3f5",
    "first": "#0969da", "second": "#d4a72c", "third": "#59636e", "bad": "#d1242f", "soft": "#e7ebef",
}  # fmt: skip
DARK = {
    "page": "#0d1117", "text": "#e6edf3", "faint": "#9198a1", "line": "#30363d", "box": "#1b222c",
    "first": "#58a6ff", "second": "#bb8009", "third": "#9198a1", "bad": "#ff7b72", "soft": "#232b35",
}  # fmt: skip

RULES = """text {{ font: 13px system-ui, sans-serif; fill: {text} }}
.faint {{ fill: {faint} }}
.page {{ fill: {page} }}
.box {{ fill: {box}; stroke: {line} }}
.rule {{ stroke: {line}; fill: none }}
.way {{ stroke: {faint}; stroke-width: 1.5; fill: none; marker-end: url(#head) }}
.cut {{ stroke: {bad}; stroke-width: 1.5; stroke-dasharray: 4 3; fill: none }}
.no {{ stroke: {bad}; stroke-width: 1.5; fill: none; marker-end: url(#stop) }}
.cross {{ stroke: {bad}; stroke-width: 2.5; fill: none }}
.bad {{ fill: {bad} }}
.head {{ fill: {faint} }}
.line {{ stroke: {first}; stroke-width: 2.5; stroke-linejoin: round; fill: none }}
.area {{ fill: {soft} }}
.first {{ fill: {first} }}
.second {{ fill: {second} }}
.third {{ fill: {third} }}
.stands {{ fill: {page}; stroke: {bad}; stroke-width: 1.5; stroke-dasharray: 3 3 }}"""

FIXED = """.title { font-size: 16px; font-weight: 600 }
.name { font-weight: 600 }
.mid { text-anchor: middle }
.end { text-anchor: end }
.over { paint-order: stroke; stroke-width: 5px; stroke-linejoin: round }"""


def style(more):
    """The rules for light screens, and those that dark ones have instead."""
    light, dark = ((RULES + more).format(**colours) + f"\n.over {{ stroke: {colours['page']} }}" for colours in (LIGHT, DARK))
    return f"<style>\n{FIXED}\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n</style>\n"


HEADS = "".join(
    f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    f'orient="auto"><path class="{kind}" d="M0 0L8 4L0 8Z"/></marker>'
    for name, kind in (("head", "head"), ("stop", "bad"))
)


def picture(title, width, height, parts, rules=""):
    """A whole picture of its parts, with its title for those who do not see it, and with rules that it alone has."""
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    begin = [head, f"<title>{html.escape(title)}</title>", style(rules) + f"<defs>{HEADS}</defs>"]
    page = '<rect class="page" width="100%" height="100%"/>'
    return "\n".join([*begin, page, *parts, "</svg>"]) + "\n"


def text(x, y, words, kind=""):
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{html.escape(words)}</text>'


def rect(kind, x, y, width, height, round_by=3):
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round_by}"/>'


def path(kind, d):
    return f'<path class="{kind}" d="{d}"/>'
