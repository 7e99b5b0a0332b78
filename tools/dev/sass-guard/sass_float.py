"""Floating-point instructions, rounded as the device rounds them: a multiply-add once. Reciprocals, roots and powers
of two are correctly rounded here and within an ulp on a device."""
import ctypes
import ctypes.util
import math
from fractions import Fraction

import numpy as np

from sass_integer import makes, set_flags, writer
from sass_lanes import F32, F64, HIGH, I32, I64, LANES, U32, U64, bits, doubles, floats, predicate, register

_libm = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
_fma = _libm.fma
_fma.restype, _fma.argtypes = ctypes.c_double, [ctypes.c_double] * 3


def fma64(a, b, c, mask):
    out = np.zeros(LANES, F64)
    a, b, c = (np.broadcast_to(x, LANES) for x in (a, b, c))
    for i in np.flatnonzero(mask):
        out[i] = _fma(a[i], b[i], c[i])
    return out


def directed(a, b, c, way):
    """a * b + c in double, rounded down (RM), up (RP) or to zero (RZ)."""
    near = _fma(a, b, c)
    if not math.isfinite(near):
        return near
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if way == "RM" or way == "RZ" and exact > 0:
        return math.nextafter(near, -math.inf) if Fraction(near) > exact else near
    return math.nextafter(near, math.inf) if Fraction(near) < exact else near


def directed64(a, b, c, mask, way):
    out = np.zeros(LANES, F64)
    a, b, c = (np.broadcast_to(x, LANES) for x in (a, b, c))
    for i in np.flatnonzero(mask):
        out[i] = directed(float(a[i]), float(b[i]), float(c[i]), way)
    return out


def odd_sum(p, c):
    """p + c in double, to nearest, then made odd where it is not exact: rounding it again gives float's result."""
    s = p + c
    rest = s - p
    error = (p - (s - rest)) + (c - rest)
    even = (s.view(U64) & U64(1)) == 0
    off = (error != 0) & even & np.isfinite(s)
    up = (error > 0) == (s > 0)
    return np.where(off, np.where(up, s.view(U64) + U64(1), s.view(U64) - U64(1)), s.view(U64)).view(F64)


def to_float(s, way):
    near = s.astype(F32)
    if way is None:
        return near
    wide = near.astype(F64)
    down = np.where(wide > s, np.nextafter(near, F32(-np.inf)), near)
    up = np.where(wide < s, np.nextafter(near, F32(np.inf)), near)
    return {"RM": down, "RP": up, "RZ": np.where(s > 0, down, up)}[way]


def flushed(x):
    return np.where(np.abs(x) < F32(1.1754944e-38), np.copysign(F32(0), x), x)


@makes("FADD", "FMUL", "FFMA", "UFADD", "UFMUL", "UFFMA")
def single(machine, ins):
    put, base = writer(ins.operands[0]), ins.base.lstrip("U")
    sources = [ins.operands[1], ins.operands[-1]] if base == "FADD" else ins.operands[1:]
    gets = [floats(machine, x) for x in sources]
    way = next((x for x in ins.flags if x in ("RM", "RP", "RZ")), None)
    ftz, sat = "FTZ" in ins.flags, "SAT" in ins.flags

    def run(r, mask):
        x = [get(r) for get in gets]
        if ftz:
            x = [flushed(v) for v in x]
        if base == "FFMA" or way:
            wide = [np.broadcast_to(v, LANES).astype(F64) for v in x]
            product = wide[0] * wide[1] if base != "FADD" else wide[0]
            addend = wide[2] if base == "FFMA" else wide[1] if base == "FADD" else np.zeros(LANES)
            value = to_float(odd_sum(product, addend) if base != "FMUL" else product, way)
        else:
            value = x[0] + x[1] if base == "FADD" else x[0] * x[1]
        if sat:
            value = np.where(np.isnan(value), F32(0), np.clip(value, F32(0), F32(1)))
        if ftz:
            value = flushed(value)
        put(r, np.broadcast_to(value.astype(F32), LANES).view(U32), mask)
    return run


@makes("DADD", "DMUL", "DFMA")
def double(machine, ins):
    put = writer(ins.operands[0], 2)
    sources = [ins.operands[1], ins.operands[-1]] if ins.base == "DADD" else ins.operands[1:]
    gets = [doubles(machine, x) for x in sources]
    way = next((x for x in ins.flags if x in ("RM", "RP", "RZ")), None)

    def run(r, mask):
        x = [get(r) for get in gets]
        if way:
            value = directed64(x[0], x[1], x[2] if len(x) == 3 else 0.0, mask, way)
        elif ins.base == "DFMA":
            value = fma64(x[0], x[1], x[2], mask)
        else:
            value = x[0] + x[1] if ins.base == "DADD" else x[0] * x[1]
        put(r, np.broadcast_to(value, LANES).view(U64), mask)
    return run


def compare(name, x, y):
    """EQ .. GE are false for NaN, EQU .. GEU true; NUM and NAN ask for it."""
    none = np.isnan(x) | np.isnan(y)
    if name in ("NAN", "NUM"):
        return none if name == "NAN" else ~none
    ask = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
           "GE": np.greater_equal}[name[:2]](x, y)
    return ask | none if name.endswith("U") else ask & ~none


@makes("FSETP", "DSETP")
def setp(machine, ins):
    make = floats if ins.base == "FSETP" else doubles
    a, b, name = make(machine, ins.operands[2]), make(machine, ins.operands[3]), ins.flags[0]
    if name in ("MAX", "MIN"):
        return chooses_extreme(ins, a, b)
    put = set_flags(ins)
    return lambda r, mask: put(r, compare(name, a(r), b(r)), mask)


def chooses_extreme(ins, a, b):
    """DSETP.MAX: whether the first operand is the result, and whether both are not numbers."""
    n, m = register(ins.operands[0]), register(ins.operands[1])

    def run(r, mask):
        x, y = np.broadcast_to(a(r), LANES), np.broadcast_to(b(r), LANES)
        first = (x >= y) if ins.flags[0] == "MAX" else (x <= y)
        first = np.where(np.isnan(x), False, np.where(np.isnan(y), True, first))
        if n != 7:
            np.copyto(r.P[n], first, where=mask)
        if m != 7:
            np.copyto(r.P[m], np.isnan(x) & np.isnan(y), where=mask)
    return run


@makes("FMNMX")
def fmnmx(machine, ins):
    put, a, b = writer(ins.operands[0]), floats(machine, ins.operands[1]), floats(machine, ins.operands[2])
    least = predicate(ins.operands[3])

    def run(r, mask):
        x, y = np.broadcast_to(a(r), LANES), np.broadcast_to(b(r), LANES)
        put(r, np.where(least(r), np.fmin(x, y), np.fmax(x, y)).astype(F32).view(U32), mask)
    return run


@makes("FCHK")
def fchk(machine, ins):
    """Whether a division needs the slow path: exponents at the ends of the range."""
    n, a, b = register(ins.operands[0]), bits(machine, ins.operands[1]), bits(machine, ins.operands[2])

    def run(r, mask):
        x = (np.asarray(a(r)) >> U32(23) & U32(255)).astype(I32)
        y = (np.asarray(b(r)) >> U32(23) & U32(255)).astype(I32)
        slow = (y == 255) | (y < 2) | (y > 252) | (x == 255) | (x < 24) | (np.abs(x - y) > 124)
        np.copyto(r.P[n], slow, where=mask)
    return run


SCALAR = {
    "RCP": lambda x: F64(1) / x,
    "RSQ": lambda x: F64(1) / np.sqrt(x),
    "SQRT": np.sqrt,
    "EX2": np.exp2,
    "LG2": np.log2,
    "SIN": lambda x: np.sin(x * 2 * np.pi),
    "COS": lambda x: np.cos(x * 2 * np.pi),
}


@makes("MUFU")
def mufu(machine, ins):
    put, name = writer(ins.operands[0]), ins.flags[0]
    if name in ("RCP64H", "RSQ64H"):  # of the high word of a double; its low word counts as zero
        high, function = bits(machine, ins.operands[1]), SCALAR[name[:3]]
        return lambda r, mask: put(
            r, (function((np.broadcast_to(high(r), LANES).astype(U64) << HIGH).view(F64)).view(U64) >> HIGH), mask)
    get, function = floats(machine, ins.operands[1]), SCALAR[name]
    return lambda r, mask: put(
        r, function(np.broadcast_to(get(r), LANES).astype(F64)).astype(F32).view(U32), mask)


INTEGERS = {"S32": (I32, 1), "U32": (U32, 1), "S64": (I64, 2), "U64": (U64, 2)}
ROUNDS = {"FLOOR": np.floor, "CEIL": np.ceil, "TRUNC": np.trunc}


def round_by(flags):
    return next((ROUNDS[x] for x in flags if x in ROUNDS), np.rint)


@makes("I2F", "I2FP", "UI2F", "UI2FP")
def i2f(machine, ins):
    kind, words = next((INTEGERS[x] for x in ins.flags if x in INTEGERS), (I32, 1))
    is_double, get = "F64" in ins.flags, bits(machine, ins.operands[1], "i", words)
    put = writer(ins.operands[0], 2 if is_double else 1)

    def run(r, mask):
        value = np.broadcast_to(get(r), LANES).astype(kind)
        if is_double:
            put(r, value.astype(F64).view(U64), mask)
            return
        near = value.astype(F32)
        if "RP" in ins.flags:
            near = np.where(near.astype(F64) < value.astype(F64), np.nextafter(near, F32(np.inf)), near)
        put(r, near.astype(F32).view(U32), mask)
    return run


@makes("F2I", "UF2I")
def f2i(machine, ins):
    """Saturates; not a number becomes zero."""
    name = next((x for x in ins.flags if x in INTEGERS), "S32")
    kind, words = INTEGERS[name]
    get = (doubles if "F64" in ins.flags else floats)(machine, ins.operands[1])
    put, rounds, limits = writer(ins.operands[0], words), round_by(ins.flags), np.iinfo(kind)

    def run(r, mask):
        value = rounds(np.broadcast_to(get(r), LANES).astype(F64))
        inside = np.where(np.isnan(value), 0, np.clip(value, float(limits.min), float(limits.max)))
        whole = np.array([min(max(int(x), limits.min), limits.max) for x in inside], kind)
        put(r, whole.view(U64 if words == 2 else U32), mask)
    return run


@makes("FRND")
def frnd(machine, ins):
    is_double, rounds = "F64" in ins.flags, round_by(ins.flags)
    get = (doubles if is_double else floats)(machine, ins.operands[1])
    put, kind = writer(ins.operands[0], 2 if is_double else 1), U64 if is_double else U32
    return lambda r, mask: put(r, rounds(np.broadcast_to(get(r), LANES)).view(kind), mask)


@makes("F2F")
def f2f(machine, ins):
    if ins.flags[:2] == ["F64", "F32"]:
        put, get = writer(ins.operands[0], 2), floats(machine, ins.operands[1])
        return lambda r, mask: put(r, np.broadcast_to(get(r), LANES).astype(F64).view(U64), mask)
    if ins.flags[:2] == ["F32", "F64"]:
        put, get = writer(ins.operands[0]), doubles(machine, ins.operands[1])
        return lambda r, mask: put(r, np.broadcast_to(get(r), LANES).astype(F32).view(U32), mask)
    raise NotImplementedError(ins.text)
