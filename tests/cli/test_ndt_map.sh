#!/bin/sh
# ndt-map from the outside: usage, what it says about maps, tiles that make the same map, pictures.
#   test_ndt_map.sh BIN_DIR      0: all as expected
set -u
bin=$(cd "${1:?the folder with the programs}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/cli/one_line.sh
. "$here/one_line.sh"

expect() {
    expect_of "$bin/ndt-map" "$@"
}

map_id() {
    sed -n 's/.* id \([0-9a-f]*\)$/\1/p' out
}

"$bin/ndt-sim" --seed 1 --out sim --scans 5 --beams 16 --columns 300 >out 2>err || fail "ndt-sim"
map=sim/map.pcd

# ---- wrong input ----
expect 2 "a command is missing"
expect 2 "'inof' is not a command; did you mean 'info'?" inof
expect 2 "info needs a MAP" info
expect 3 "nosuch.pcd: cannot open" info nosuch.pcd
printf 'text' >notes.txt
expect 3 "notes.txt: neither a map nor a point cloud" info notes.txt
mkdir empty
expect 3 "contains no cloud file" info empty
printf '# .PCD v0.7\nVERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 1\nHEIGHT 1\nPOINTS 1\nDATA ascii\nnan nan nan\n' >nan.pcd
expect 3 "nan.pcd: contains no finite point" info nan.pcd
expect 3 "nan.pcd: contains no finite point" tile nan.pcd --out t
if [ -e t ] || [ -e t.part ]; then
    fail "something is left of a failed run"
fi
expect 2 "tile needs --out DIR" tile $map
expect 2 "--size: '0' is not a number from 1 to 2000" tile $map --out t --size 0

# ---- info ----
expect 0 "" info $map
says "points  "
says "levels       4 m: "
says "1 file"
! grep -q "too sparse" out || fail "the levels of a dense map"
"$bin/ndt-sim" --seed 3 --scans 1 --map-spacing 0.5 --out sparse >/dev/null || fail "a sparse map"
expect 0 "" info sparse/map.pcd
says "voxels, too sparse: ndtd does without them"
expect 0 "" info $map
id=$(map_id)
[ -n "$id" ] || fail "no id of the map"
expect 0 "" info $map --json
if command -v python3 >/dev/null; then
    python3 - out "$id" <<'CHECK' || fail "JSON"
import json, sys
info = json.load(open(sys.argv[1]))
assert f"{info['map_id']:016x}" == sys.argv[2] and info["points"] > 1000 and info["spacing_m"] < 1e-4, info
assert [level["leaf_m"] for level in info["levels"]] == [4, 2, 1], info
assert all(low < high for low, high in zip(info["min_m"], info["max_m"])), info
CHECK
fi
printf 'projector_type: MGRS\nvertical_datum: WGS84\nmgrs_grid: 54SUE\n' >sim/map_projector_info.yaml
expect 0 "" info $map
says "projector_type MGRS, vertical_datum WGS84, mgrs_grid 54SUE ("
printf 'projector_type: Local\ncrs: EPSG:25832\noffset: [1, 2.5, 0]\nmap_origin: {latitude: 49, longitude: 8}\n' \
    >sim/map_projector_info.yaml
expect 0 "" info $map
says "projector_type Local, crs EPSG:25832, offset 1 2.5 0, latitude 49, longitude 8 ("
printf '{' >sim/map_projector_info.yaml
expect 0 "map_projector_info.yaml: not YAML" info $map
rm sim/map_projector_info.yaml
# float32 at UTM: the coordinates of neighbours are half a metre apart
"$bin/ndt-sim" --seed 1 --out utm --world utm --scans 2 --beams 16 --columns 300 >out 2>err || fail "ndt-sim"
expect 0 "" info utm/map.pcd
says "y 49"
{ printf '# .PCD v0.7\nVERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 1\nHEIGHT 1\nPOINTS 1\nDATA binary\n'
  printf '\000\361\275\110\040\253\227\112\000\000\360\102'; } >coarse.pcd # 389000, 4970000, 120
expect 0 "float32 that far from the origin that neighbouring ones are 0.5 m apart" info coarse.pcd
"$bin/ndtd" --compile-map coarse.ndtmap --map coarse.pcd >out 2>err
grep -q "neighbouring ones are 0.5 m apart" err || fail "ndtd --compile-map says nothing about coarse coordinates"
"$bin/ndtd" --replay sim/drive.bag --map coarse.pcd >out 2>err
grep -q "neighbouring ones are 0.5 m apart" err || fail "a replay says nothing about coarse coordinates"
"$bin/ndtd" --map coarse.pcd --set sockets.scans="ipc://$work/s" --set sockets.poses="ipc://$work/p" \
    --set sockets.control="ipc://$work/c" >out 2>err &
daemon=$!
until grep -q ' ready ' err || ! kill -0 "$daemon" 2>/dev/null; do sleep 0.1; done
kill "$daemon" 2>/dev/null
wait "$daemon"
grep -q "warning: map .*neighbouring ones are 0.5 m apart" err || fail "the daemon says nothing about coarse coordinates"

# ---- tiles ----
expect 0 "" tile $map --out tiles --size 20
says "tiles of 20 m"
[ -s tiles/pointcloud_map_metadata.yaml ] || fail "no metadata"
expect 0 "" info tiles
says "of 20 x 20 m"
[ "$(map_id)" = "$id" ] || fail "the tiles make another map"
expect 2 "tiles: exists already; --force overwrites it" tile $map --out tiles
expect 0 "" tile $map --out tiles --size 50 --force
expect 0 "" tile tiles --out again --size 33.3
expect 0 "" info again
[ "$(map_id)" = "$id" ] || fail "tiles of tiles make another map"
mkdir autoware && mv again autoware/pointcloud_map.pcd && mv autoware/pointcloud_map.pcd/*.yaml autoware/
expect 0 "" info autoware
[ "$(map_id)" = "$id" ] || fail "Autoware's folders make another map"
expect 0 "" info autoware/pointcloud_map.pcd
says "of 33.3 x 33.3 m"
touch tiles/notes.txt
expect 3 "holds 'notes.txt', which is no part of a tiled map: not replaced" tile $map --out tiles --force
[ -s tiles/pointcloud_map_metadata.yaml ] || fail "a refused folder lost its metadata"
rm tiles/notes.txt
mkdir tiles/zone.pcd
ls tiles >before
expect 3 "holds 'zone.pcd', which is no part of a tiled map: not replaced" tile $map --out tiles --force
ls tiles | cmp -s before || fail "a refused folder lost tiles"
rmdir tiles/zone.pcd
ln -s tiles link
expect 0 "" tile $map --out link --size 40 --force
[ -L link ] || fail "a link was replaced"
expect 0 "" info tiles
says "of 40 x 40 m"
touch tiles/notes.txt
expect 2 "$map: exists and is not a folder" tile $map --out $map --force
expect 0 "" tile utm/map.pcd --out utm/tiles
# far from zero the first point chooses the origin of the map, and with it the id; the voxels stay
expect 0 "" info utm/map.pcd
grep -E "voxels|points|bounds" out >utm/before
expect 0 "" info utm/tiles
grep -E "voxels|points|bounds" out | cmp -s utm/before || fail "tiles of UTM make another map"

# ---- compiled maps ----
"$bin/ndtd" --compile-map map.ndtmap --map $map >out 2>err || fail "ndtd --compile-map"
expect 0 "" info map.ndtmap
[ "$(map_id)" = "$id" ] || fail "the compiled map has another id"
expect 3 "a compiled map has no points" tile map.ndtmap --out t

# ---- pictures ----
"$bin/ndt-map" picture $map --out top.png >out 2>err
if grep -q "pictures need libpng" err; then
    echo "note: built without libpng"
else
    says "top.png: "
    [ "$(head -c 4 top.png | tail -c 3)" = PNG ] || fail "top.png is no PNG"
    grep -q '^resolution: ' top.yaml || fail "no top.yaml for map_server"
    [ "$(wc -l <top.pgw)" -eq 6 ] || fail "no world file of six lines"
    expect 2 "top.png: exists already; --force overwrites it" picture $map --out top.png
    cp top.png before.png
    expect 0 "" picture $map --out top.png --force
    cmp -s top.png before.png || fail "the same map gives another picture"
    rm top.png
    expect 2 "top.pgw: exists already" picture $map --out top.png
    expect 0 "" picture $map --out grid.png --style occupancy
    says "pixels of 0.5 m"
    expect 0 "" picture map.ndtmap --out compiled.png --scale 0.5 --style density
    expect 3 "give a larger --scale" picture $map --out huge.png --scale 0.001
    expect 2 "--style: 'hight' is not height, density or occupancy" picture $map --out x.png --style hight
    # the place of the corner: a map of one point
    { sed -n 1,10p nan.pcd; echo "12.34 -5.67 1"; } >one.pcd
    expect 0 "" picture one.pcd --out one.png --scale 0.1
    says "1 x 1 pixels of 0.1 m, lower left corner at 12.300 -5.700 m"
    grep -qx 'origin: \[12.3, -5.7, 0\]' one.yaml || fail "one.yaml: $(grep origin one.yaml)"
fi

# ---- quality ----
expect 2 "--step: '0' is not a number from 0.5 to 1000" quality $map --step 0
expect 3 "nosuch.tum: cannot open" quality $map --trajectory nosuch.tum
echo "0 9000 9000 0 0 0 0 1" >away.tum
"$bin/ndt-map" quality $map --trajectory away.tum >out 2>err || fail "quality outside the map"
[ "$(sed 1d out | cut -f 6,9)" = "0	inf" ] || fail "a place outside the map has a deviation: $(cat out)"
"$bin/ndt-map" quality $map --step 10 --out street.tsv >out 2>err || fail "quality"
grep -q "places, .* aligned, .* with weak axes; basin: median" err || fail "no summary"
[ "$(head -n 1 street.tsv | cut -f 1,8,12)" = "x_m	weak_axes	basin_m" ] || fail "header: $(head -n 1 street.tsv)"
# most places of a street lead back from a metre and determine the pose to a few centimetres
awk -F '\t' 'NR > 1 {n++; good += $6 == 1 && $8 == 0 && $9 < 0.05 && $12 >= 1} END {exit !(n > 2 && good > n / 2)}' street.tsv ||
    fail "street: $(cat street.tsv)"
expect 2 "street.tsv: exists already; --force overwrites it" quality $map --step 20 --out street.tsv
"$bin/ndt-sim" --seed 2 --world tunnel --out tunnel --scans 20 --beams 16 --columns 300 >out 2>err || fail "ndt-sim"
{ echo "# a place in its middle"; echo "0 -80 0 1.8 0 0 0 1"; echo "1 -79 0 1.8 0 0 0 1"; echo "2 -70 0 1.8 0 0 0 1"; } >places.tum
"$bin/ndt-map" quality tunnel/map.pcd --trajectory places.tum --out tunnel.tsv >out 2>err || fail "quality of a tunnel"
# two of the poses are 5 m apart; along the tunnel, the x axis, nothing determines the pose
awk -F '\t' 'NR > 1 {n++; weak += $6 == 1 && $8 >= 1 && ($10 < 10 || $10 > 170) && $11 < 0.2 && $12 < 1} END {exit !(n == 2 && weak == 2)}' \
    tunnel.tsv || fail "tunnel: $(cat tunnel.tsv)"
expect 0 "places" quality tunnel/map.pcd --trajectory places.tum --format json
says '"weak_axes":'
if [ -e grid.png ]; then # built with libpng
    "$bin/ndt-map" quality $map --step 20 --out - --picture rated.png --show deviation >out 2>err || fail "quality --picture"
    for file in rated.png rated.pgw rated.yaml; do
        [ -s $file ] || fail "no $file"
    done
    # The legend is below the map, a ramp from red to blue with white letters above and below it.
    python3 - rated.png <<'PYTHON' || fail "no legend in rated.png"
import struct
import sys
import zlib

data, at, parts = open(sys.argv[1], "rb").read(), 8, []
while at < len(data):
    length, kind = struct.unpack(">I4s", data[at : at + 8])
    if kind == b"IHDR":
        width, height = struct.unpack(">II", data[at + 8 : at + 16])
    if kind == b"IDAT":
        parts.append(data[at + 8 : at + 8 + length])
    at += 12 + length
raw, rows, before = zlib.decompress(b"".join(parts)), [], bytes(3 * width)
for y in range(height):
    kind, line = raw[y * (3 * width + 1)], bytearray(raw[y * (3 * width + 1) + 1 : (y + 1) * (3 * width + 1)])
    for i in range(len(line)):
        a, b, c = line[i - 3] if i > 2 else 0, before[i], before[i - 3] if i > 2 else 0
        nearest = min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
        line[i] = (line[i] + (0, a, b, (a + b) // 2, nearest)[kind]) & 255
    before = bytes(line)
    rows.append([tuple(line[i : i + 3]) for i in range(0, len(line), 3)])
ramps = [y for y, row in enumerate(rows) if (200, 30, 30) in row and (40, 110, 200) in row]
strip = rows[ramps[0] - 20 :] if len(ramps) >= 8 else []
letters = [y for y, row in enumerate(strip, ramps[0] - 20 if strip else 0) if (255, 255, 255) in row]
row = rows[ramps[0]]
assert row.index((200, 30, 30)) < row.index((40, 110, 200)) and ramps == list(range(ramps[0], ramps[-1] + 1)), ramps
assert min(letters) < ramps[0] and max(letters) > ramps[-1] and len(letters) >= 12, letters
PYTHON
fi

[ "$failures" -eq 0 ] || exit 1
echo "ndt-map: all as expected"
