"""A sequence of messages between parties as a picture: a lane for each party, time downwards, a row for each event with
its time. Beside a lane stands what its party is doing: it holds, it waits, it is stopped. It draws what it is given.
"""

import collections

import svg

# `at` is in microseconds. A message goes from `lane` to `to`; without `to` it is a note on the lane. `kind` is "" or
# "no" (refused) or "cut" (it does not arrive). `states` is what becomes of lanes: holds, waits, stopped or nothing.
Event = collections.namedtuple("Event", "at lane to text kind states", defaults=[None, "", "", {}])

BARS = {"holds": ("first", 10), "waits": ("second", 5), "stopped": ("stands", 10)}
LEFT, RIGHT, TOP, ROW = 96, 40, 104, 36
LETTER = 6.9  # the width of one, on average


def millis(us):
    return f"{us / 1000:.1f} ms" if us < 100_000 else f"{us / 1000:,.0f} ms"


class Sequence:
    def __init__(self, title, lanes, events, width=836):
        self.title, self.lanes, self.width = title, lanes, width
        self.events = sorted(events, key=lambda event: event.at)
        self.start = self.events[0].at
        step = (width - LEFT - RIGHT) / len(lanes)
        self.x = {lane: LEFT + step * (at + 0.5) for at, lane in enumerate(lanes)}
        self.bottom = TOP + ROW * len(self.events)

    def y(self, row):
        return TOP + ROW * (row + 0.5)

    def bars(self):
        """What each party is doing, from the row where that began to the row where it ended."""
        for lane in self.lanes:
            state, since = None, 0
            for row, event in enumerate([*self.events, None]):
                if event is not None and lane not in event.states:
                    continue
                if state:
                    kind, width = BARS[state]
                    end = self.y(row) if event else self.bottom
                    yield svg.rect(kind, self.x[lane] - width / 2, self.y(since), width, end - self.y(since))
                state, since = event and event.states[lane], row

    def half(self, lane, row):
        """Half the width of what stands on the lane at this row."""
        state = None
        for event in self.events[: row + 1]:
            state = event.states.get(lane, state)
        return BARS[state][1] / 2 if state else 0

    def message(self, event, row):
        y, begin, end = self.y(row), self.x[event.lane], self.x[event.to]
        way = 1 if end > begin else -1
        begin, end = begin + way * self.half(event.lane, row), end - way * (self.half(event.to, row) + 1)
        if event.kind == "cut":
            end -= way * 14
            yield svg.path("cut", f"M{begin:g} {y:g}H{end:g}")
            yield svg.path("cross", f"M{end - 5:g} {y - 5:g}l10 10m0 -10l-10 10")
        else:
            yield svg.path(event.kind or "way", f"M{begin:g} {y:g}H{end:g}")
        # Beside its sender, so that it does not stand on another lane.
        side = begin + way * min(10, abs(end - begin) / 2)
        yield svg.text(side, y - 6, event.text, "over" + (" bad" if event.kind else "") + ("" if way > 0 else " end"))

    def note(self, event, row):
        y, width = self.y(row), len(event.text) * LETTER + 16
        x = min(max(self.x[event.lane], LEFT + width / 2), self.width - 12 - width / 2)
        yield svg.rect("box", x - width / 2, y - 12, width, 24, 12)
        yield svg.text(x, y + 4.5, event.text, "mid" + (" bad" if event.kind else ""))

    def legend(self):
        used = [state for state in BARS if any(state in event.states.values() for event in self.events)]
        x = self.width - 16
        for state in reversed(used):
            x -= len(state) * LETTER
            yield svg.text(x, 36, state)
            kind, height = BARS[state]
            x -= 34
            yield svg.rect(kind, x, 31.5 - height / 2, 26, height)
            x -= 20

    def rows(self):
        before = None
        for row, event in enumerate(self.events):
            time = millis(event.at - self.start)
            if time != before:
                yield svg.text(LEFT - 26, self.y(row) + 4.5, time, "end faint")
            before = time
            yield from self.message(event, row) if event.to else self.note(event, row)

    def __str__(self):
        parts = [svg.text(20, 36, self.title, "title"), *self.legend()]
        for lane in self.lanes:
            parts.append(svg.path("rule", f"M{self.x[lane]:g} {TOP - 12}V{self.bottom:g}"))
        parts += self.bars()
        for lane in self.lanes:
            width = len(lane) * (LETTER + 0.6) + 26
            parts.append(svg.rect("box", self.x[lane] - width / 2, TOP - 42, width, 30, 6))
            parts.append(svg.text(self.x[lane], TOP - 22, lane, "name mid"))
        return svg.picture(self.title, self.width, self.bottom + 20, [*parts, *self.rows()])
