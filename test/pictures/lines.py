"""Numbers against numbers, as a picture: a line for each series, on scales on which each step is a factor. It draws what
it is given.
"""

import math

import svg

WIDTH, LEFT, RIGHT, TOP, HEIGHT = 836, 96, 120, 76, 300
KINDS = ("first", "second", "third", "bad")
RULES = "".join(f"\n.line.{kind} {{{{ stroke: {{{kind}}}; fill: none }}}}" for kind in KINDS)


class Lines:
    """`series` are (name, [(x, y)]), four at most, all with the same xs. The scale up is in steps of ten."""

    def __init__(self, title, across, series):
        self.title, self.across, self.series = title, across, series
        self.xs = [x for x, _ in series[0][1]]
        ys = [y for _, points in series for _, y in points]
        self.powers = range(math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys))) + 1)

    def x(self, value):
        first, last = math.log(self.xs[0]), math.log(self.xs[-1])
        return LEFT + (math.log(value) - first) / (last - first) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        first, last = self.powers[0], self.powers[-1]
        return TOP + HEIGHT * (last - math.log10(value)) / (last - first)

    def axes(self):
        bottom = TOP + HEIGHT
        for power in self.powers:
            yield svg.path("rule", f"M{LEFT} {self.y(10**power):g}H{WIDTH - RIGHT}")
            yield svg.text(LEFT - 12, self.y(10**power) + 4.5, f"{10**power:,}", "end faint")
        for value in self.xs:
            yield svg.path("rule", f"M{self.x(value):.1f} {bottom}v5")
            yield svg.text(round(self.x(value), 1), bottom + 22, f"{value:,g}", "mid faint")
        yield svg.text((LEFT + WIDTH - RIGHT) / 2, bottom + 44, self.across, "mid faint")

    def names(self):
        """Where the lines end; no two at one height."""
        below = math.inf
        for kind, (name, points) in sorted(zip(KINDS, self.series), key=lambda each: each[1][1][-1][1]):
            below = min(self.y(points[-1][1]) + 4.5, below - 16)
            yield svg.rect(kind, WIDTH - RIGHT + 12, round(below - 9.5, 1), 10, 10, 2)
            yield svg.text(WIDTH - RIGHT + 28, round(below, 1), name)

    def lines(self):
        for kind, (_, points) in zip(KINDS, self.series):
            path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
            yield f'<polyline class="line {kind}" points="{path}"/>'
            for x, y in points:
                yield f'<circle class="{kind}" cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3.5"/>'

    def __str__(self):
        parts = [svg.text(20, 32, self.title, "title"), *self.axes(), *self.lines(), *self.names()]
        return svg.picture(self.title, WIDTH, TOP + HEIGHT + 60, parts, RULES)


def handoffs(rows):
    """Handoffs a second by waiters; `rows` are (waiters, and by passing on, queue, floor and polling)."""
    names = ("passing on", "queue", "bare pair", "polling")
    series = [(name, [(row[0], row[at]) for row in rows]) for at, name in enumerate(names, 1)]
    return Lines("Handoffs against waiters, handoffs/s", "waiters, in four processes", series)
