"""Line plots with logarithmic axes, as SVG."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 680, 420, 74, 210, 40, 56
COLOURS = ("#1b6ca8", "#c8553d", "#3a8f5c", "#7d4f9e", "#b8860b", "#4a4a4a")


def text(x, y, words, anchor="middle", size=12, turn=""):
    return '<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d"%s>%s</text>' % (x, y, anchor, size, turn, escape(words))


def short(value):
    for limit, unit in ((1e6, "M"), (1e3, "k")):
        if value >= limit:
            return "%g%s" % (value / limit, unit)
    return "%g" % value


class Axis:
    """Decades that hold all values, over a range of pixels."""

    def __init__(self, values, start, end):
        low, high = min(values), max(values)
        self.low, self.high = math.log10(low), math.log10(high)
        spare = max(0.05 * (self.high - self.low), 0.1)
        self.low, self.high, self.start, self.end = self.low - spare, self.high + spare, start, end

    def at(self, value):
        return self.start + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self):
        decades = self.high - self.low
        steps = (1, 1.5, 2, 3, 4, 5, 7) if decades < 1 else (1, 2, 5) if decades < 2.5 else (1,)
        found = [step * 10.0 ** power for power in range(math.floor(self.low), math.ceil(self.high) + 1)
                 for step in steps]
        return [value for value in found if self.low <= math.log10(value) <= self.high]


def frame(x, y, title, x_label, y_label):
    parts = [text((LEFT + WIDTH - RIGHT) / 2, 22, title, size=14)]
    for value in x.ticks():
        at = x.at(value)
        parts.append('<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>' % (at, TOP, at, HEIGHT - BOTTOM))
        parts.append(text(at, HEIGHT - BOTTOM + 16, short(value)))
    for value in y.ticks():
        at = y.at(value)
        parts.append('<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>' % (LEFT, at, WIDTH - RIGHT, at))
        parts.append(text(LEFT - 6, at + 4, short(value), "end"))
    parts.append('<rect x="%d" y="%d" width="%d" height="%d" fill="none" stroke="#666"/>' %
                 (LEFT, TOP, WIDTH - RIGHT - LEFT, HEIGHT - BOTTOM - TOP))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x_label))
    parts.append(text(18, (TOP + HEIGHT - BOTTOM) / 2, y_label, turn=' transform="rotate(-90 18 %.1f)"' %
                      ((TOP + HEIGHT - BOTTOM) / 2)))
    return parts


def draw(name, points, x, y, row):
    colour = COLOURS[row % len(COLOURS)]
    path = " ".join("%.1f,%.1f" % (x.at(px), y.at(py)) for px, py in points)
    parts = ['<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' % (path, colour)]
    parts += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (x.at(px), y.at(py), colour) for px, py in points]
    at = TOP + 14 + 20 * row
    parts.append('<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="2"/>' %
                 (WIDTH - RIGHT + 12, at - 4, WIDTH - RIGHT + 32, at - 4, colour))
    parts.append(text(WIDTH - RIGHT + 38, at, name, "start"))
    return parts


def plot(title, x_label, y_label, series, dashed=()):
    """series: (name, [(x, y), ...]); all numbers above 0. dashed: two points of a line to compare with."""
    series = [(name, sorted(points)) for name, points in series if points]
    x = Axis([px for _, points in series for px, _ in points], LEFT, WIDTH - RIGHT)
    y = Axis([py for _, points in series for _, py in points] + [py for _, py in dashed], HEIGHT - BOTTOM, TOP)
    parts = frame(x, y, title, x_label, y_label)
    if dashed:
        parts.append('<polyline points="%s" fill="none" stroke="#999" stroke-dasharray="5 4"/>' %
                     " ".join("%.1f,%.1f" % (x.at(px), y.at(py)) for px, py in dashed))
    for row, (name, points) in enumerate(series):
        parts += draw(name, points, x, y, row)
    return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" '
            'font-family="sans-serif" fill="#222">\n<rect width="100%%" height="100%%" fill="#fff"/>\n%s\n</svg>\n' %
            (WIDTH, HEIGHT, WIDTH, HEIGHT, "\n".join(parts)))
