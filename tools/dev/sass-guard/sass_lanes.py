"""Registers of a warp, and operands: from their text to functions that give the values of all 32 lanes."""
import math
import re

import numpy as np

LANES = 32
U32, U64, I32, I64, F32, F64 = np.uint32, np.uint64, np.int32, np.int64, np.float32, np.float64
HIGH = U64(32)
WORDS = re.compile(r"^(-|~|\|)*(UR|UP|R|P|B)(\d+|Z|T)")
SUFFIX = re.compile(r"\.(H0_H0|H1_H1|64|SX32|U32|S32|B[0-3]|H[01]|F32|reuse|X\d+)$")
SPECIAL = {"+INF": math.inf, "-INF": -math.inf, "INF": math.inf, "+QNAN": math.nan, "-QNAN": math.nan,
           "QNAN": math.nan}
np.seterr(all="ignore")


class Registers:
    """State of the 32 lanes of a warp."""

    def __init__(self):
        self.R = np.zeros((256, LANES), U32)  # R[255] is RZ
        self.P = np.zeros((8, LANES), bool)   # P[7] is PT
        self.P[7] = True
        self.U = [0] * 256                    # U[255] is URZ, of which the assembler says no number
        self.UP = [False] * 7 + [True]
        self.B = [[0] * LANES for _ in range(16)]  # lanes that wait for one another, per lane

    def pair(self, n):
        if n == 255:
            return np.zeros(LANES, U64)
        return self.R[n].astype(U64) | self.R[n + 1].astype(U64) << HIGH

    def set(self, n, value, mask):
        if n != 255:
            np.copyto(self.R[n], value, where=mask, casting="unsafe")

    def set_pair(self, n, value, mask):
        if n != 255:
            np.copyto(self.R[n], value.astype(U32), where=mask)
            np.copyto(self.R[n + 1], (value >> HIGH).astype(U32), where=mask)

    def set_uniform(self, n, value, words=1):
        for k in range(words):
            if n + k < 255:
                self.U[n + k] = int(value) >> 32 * k & 0xFFFFFFFF


def plain(text):
    """The operand without signs and suffixes, and what these say."""
    negative = inverted = absolute = False
    suffixes = []
    text = text.strip()
    if re.match(r"-[|RUc]", text):
        negative, text = True, text[1:]
    if text.startswith("~"):
        inverted, text = True, text[1:]
    if text.startswith("|"):
        absolute, text = True, text[1:].replace("|", "", 1)
    while WORDS.match(text) or text.startswith("c["):
        match = SUFFIX.search(text)
        if not match:
            break
        suffixes.append(match.group(1))
        text = text[:match.start()]
    return text, negative, inverted, absolute, suffixes


def register(text):
    """Number of a register, a uniform register, a predicate or a barrier."""
    match = re.search(r"(\d+|Z|T)$", plain(text)[0])
    number = match.group(1)
    if number == "Z":
        return 255
    return 7 if number == "T" else int(number)


def is_predicate(text):
    return re.match(r"^!?U?P(\d|T)$", text) is not None


def is_uniform(text):
    return plain(text)[0].startswith("UR")


def predicate(text):
    """Function of the registers: the predicate of each lane, or one for all."""
    negated, uniform = text.startswith("!"), "UP" in text
    n = register(text)
    if uniform:
        return (lambda r: not r.UP[n]) if negated else (lambda r: r.UP[n])
    return (lambda r: ~r.P[n]) if negated else (lambda r: r.P[n])


def constant_of(machine, text, words):
    bank, offset = re.match(r"c\[(\w+)\]\s*\[([^\]]+)\]", text).groups()
    if not re.match(r"^-?0x[0-9a-f]+$", offset):
        raise NotImplementedError("constant " + text)
    return machine.constant(int(bank, 16), int(offset, 16), words)


def immediate(text, kind):
    if kind == "i":
        return int(text, 0) if not re.match(r"^-?\d+\.", text) else int(float(text))
    if text.strip() in SPECIAL:
        value = SPECIAL[text.strip()]
    elif "0x" in text:
        return int(text, 16)
    else:
        value = float(text)
    return int(F32(value).view(U32)) if kind == "f" else int(F64(value).view(U64))


def bits(machine, text, kind="i", words=1):
    """Function of the registers: the operand as uint32 or uint64. kind: i, f or d, for immediates and signs."""
    name, negative, inverted, absolute, suffixes = plain(text)
    kind_of = U32 if words == 1 else U64
    top = kind_of(1 << 32 * words - 1)
    if re.match(r"^R(\d+|Z)$", name):
        n = register(name)
        get = (lambda r: r.R[n]) if words == 1 else (lambda r: r.pair(n))
    elif re.match(r"^UR(\d+|Z)$", name):
        n = register(name)
        if words == 1 or n == 255:
            get = lambda r: kind_of(r.U[n])
        else:
            get = lambda r: U64(r.U[n] | r.U[n + 1] << 32)
    else:
        value = constant_of(machine, name, words) if name.startswith("c[") else immediate(name, kind)
        fixed = kind_of(value & (1 << 32 * words) - 1)
        get = lambda r: fixed
    if "H1_H1" in suffixes or "H1" in suffixes:
        half = get
        get = lambda r: half(r) >> U32(16)
    if absolute:
        signed = get
        get = lambda r: signed(r) & ~top
    if negative:
        positive = get
        get = (lambda r: -positive(r)) if kind == "i" else (lambda r: positive(r) ^ top)
    if inverted:
        upright = get
        get = lambda r: ~upright(r)
    return get


def floats(machine, text):
    get = bits(machine, text, "f")
    return lambda r: get(r).view(F32)


def doubles(machine, text):
    get = bits(machine, text, "d", 2)
    return lambda r: get(r).view(F64)


def address(text, is_wide):
    """Function of the registers: address of each lane. [R1], [R2.64+0x10], [R1.X8+UR4+0x10], desc[UR4][R2.64]
    is_wide: registers are pairs unless they say otherwise."""
    inside = re.match(r"^(?:desc\[\w+\])?\[([^\]]*)\]$", text).group(1)
    parts, fixed = [], 0
    for part in re.findall(r"[+-]?[^+-]+", inside.replace(" ", "")):
        sign = -1 if part.startswith("-") else 1
        part = part.lstrip("+-")
        if re.match(r"^(0x)?[0-9a-f]+$", part):
            fixed += sign * int(part, 16)
            continue
        n, wide = register(part.split(".")[0]), is_wide and ".U32" not in part
        scale = U64(int((re.search(r"\.X(\d+)", part) or [0, 1])[1]))
        if part.startswith("UR"):
            parts.append((lambda r, n=n, wide=wide: U64(r.U[n] | (r.U[n + 1] << 32 if wide and n < 62 else 0))))
        elif wide:
            parts.append(lambda r, n=n: r.pair(n))
        else:
            parts.append(lambda r, n=n, scale=scale: r.R[n].astype(U64) * scale)
    fixed = U64(fixed & (1 << 64) - 1)

    def sum_up(r):
        total = np.full(LANES, fixed)
        for part in parts:
            total = total + part(r)
        return total
    return sum_up
