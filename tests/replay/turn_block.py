#!/usr/bin/env python3
"""turn_block.py MAP.pcd OUT.pcd X Y HALF_M YAW_DEG: a map (binary PCD, floats x y z first) in which a square block was
changed: its points are turned about its middle (X, Y). Standard library only."""
import array
import math
import sys


def main(source, target, *numbers):
    x, y, half_m, yaw_deg = map(float, numbers)
    with open(source, "rb") as file:
        data = file.read()
    at = data.index(b"DATA binary\n") + len(b"DATA binary\n")
    header = dict(line.split(" ", 1) for line in data[:at].decode().splitlines() if " " in line)
    width = len(header["FIELDS"].split())
    if header["FIELDS"].split()[:3] != ["x", "y", "z"] or set(header["SIZE"].split()) != {"4"}:
        sys.exit(f"{source}: its fields are {header['FIELDS']} of {header['SIZE']} bytes, not floats x y z")
    values = array.array("f", data[at:at + 4 * width * int(header["POINTS"])])
    c, s = math.cos(math.radians(yaw_deg)), math.sin(math.radians(yaw_deg))
    turned = 0
    for i in range(0, len(values), width):
        dx, dy = values[i] - x, values[i + 1] - y
        if abs(dx) <= half_m and abs(dy) <= half_m:
            values[i], values[i + 1] = x + c * dx - s * dy, y + s * dx + c * dy
            turned += 1
    with open(target, "wb") as file:
        file.write(data[:at] + values.tobytes())
    if turned == 0:
        sys.exit(f"{source}: the block holds no point")


if __name__ == "__main__":
    main(*sys.argv[1:])
