"""How long a holder may still believe in its lease, over time, as a picture: it rises with each renewal, and falls while
none is confirmed. Above it stands what was reported, below it what the server was doing. It draws what it is given.
"""

import svg

WIDTH, LEFT, RIGHT, TOP, HEIGHT = 836, 96, 40, 100, 180
LETTER = 6.9  # the width of one, on average


class Curve:
    """`readings` are (moment, milliseconds left), `reports` (moment, words), `away` when the server stopped. Moments are
    in microseconds."""

    def __init__(self, title, readings, reports, away):
        self.title, self.readings, self.reports, self.away = title, readings, reports, away
        self.start, self.end = readings[0][0], reports[-1][0]
        self.most = max(left for _, left in readings)

    def x(self, at):
        span = (self.end - self.start) * 1.06
        return LEFT + (at - self.start) / span * (WIDTH - LEFT - RIGHT)

    def y(self, left):
        return TOP + HEIGHT * (1 - left / (self.most * 1.1))

    def axes(self):
        for left in range(0, self.most + 1, 500):
            yield svg.path("rule faint", f"M{LEFT} {self.y(left):g}H{WIDTH - RIGHT}")
            yield svg.text(LEFT - 12, self.y(left) + 4.5, f"{left:,} ms", "end faint")
        for half in range((self.end - self.start) // 500_000 + 1):
            x = self.x(self.start + half * 500_000)
            yield svg.path("rule faint", f"M{x:g} {self.y(0):g}v5")
            yield svg.text(x, self.y(0) + 20, f"{half / 2:g} s", "mid faint")

    def line(self):
        points = " ".join(f"{self.x(at):.1f},{self.y(left):.1f}" for at, left in self.readings)
        area = f"{self.x(self.start):.1f},{self.y(0):.1f} {points} {self.x(self.readings[-1][0]):.1f},{self.y(0):.1f}"
        return [f'<polygon class="area" points="{area}"/>', f'<polyline class="line" points="{points}"/>']

    def server(self):
        """Two bars below: the server answers, and then it is stopped."""
        y, begin, change, end = self.y(0) + 46, self.x(self.start), self.x(self.away), WIDTH - RIGHT
        yield svg.text(LEFT - 12, y + 4.5, "server", "name end")
        yield svg.rect("box", begin, y - 11, change - begin, 22)
        yield svg.text((begin + change) / 2, y + 4.5, "answers", "mid")
        yield svg.rect("stands", change, y - 11, end - change, 22)
        yield svg.text((change + end) / 2, y + 4.5, "is stopped", "mid bad")

    def marks(self):
        for at, words in self.reports:
            x, width = self.x(at), len(words) * LETTER + 16
            left = min(max(x - width / 2, LEFT), WIDTH - 12 - width)
            yield svg.path("cut" if words != self.reports[0][1] else "rule", f"M{x:g} {TOP - 14}V{self.y(0):g}")
            yield svg.rect("box", left, TOP - 38, width, 24, 12)
            yield svg.text(left + width / 2, TOP - 21.5, words, "mid" + ("" if words == self.reports[0][1] else " bad"))

    def __str__(self):
        head = [svg.text(20, 36, self.title, "title"), svg.text(WIDTH - 16, 36, "how long the holder may believe", "end")]
        parts = [*head, *self.axes(), *self.line(), *self.marks(), *self.server()]
        return svg.picture(self.title, WIDTH, int(self.y(0) + 76), parts)
