"""Integer instructions, predicates and moves. Each maker takes the machine and the instruction and returns what the
instruction does to registers and a mask of lanes."""
import struct

import numpy as np

from sass_lanes import HIGH, I32, I64, LANES, U32, U64, bits, is_predicate, is_uniform, predicate, register

MAKERS = {}


def makes(*names):
    def keep(function):
        for name in names:
            MAKERS[name] = function
        return function
    return keep


def writer(text, words=1):
    """Function of registers, value, mask: writes to the register or the uniform register that `text` names."""
    n = register(text)
    if is_uniform(text):
        return lambda r, value, mask: r.set_uniform(n, np.max(value), words)
    if words == 2:
        return lambda r, value, mask: r.set_pair(n, value, mask)
    return lambda r, value, mask: r.set(n, value, mask)


def flag_writer(text):
    n = register(text)
    if n == 7:
        return lambda r, value, mask: None
    if "UP" in text:
        def set_one(r, value, mask):
            r.UP[n] = bool(np.any(value))
        return set_one
    return lambda r, value, mask: np.copyto(r.P[n], value, where=mask)


def split(operands):
    """Destination, predicates written, sources, predicates read."""
    values = [i for i, x in enumerate(operands) if not is_predicate(x)]
    first, last = values[0], values[-1]
    written = [x for i, x in enumerate(operands) if first < i < last and is_predicate(x) and i < values[1]]
    return (operands[first], written, [operands[i] for i in values[1:]],
            [x for i, x in enumerate(operands) if i > last])


def carries(read):
    gets = [predicate(x) for x in read]

    def total(r):
        value = U64(0)
        for get in gets:
            value = value + np.asarray(get(r)).astype(U64)
        return value
    return total


@makes("IADD", "UIADD")
def iadd(machine, ins):
    """From compute capability 10.0: a sum of two, of 64 bits with that flag."""
    if len(ins.operands) != 3 or "X" in ins.flags:
        raise NotImplementedError(ins.text)
    words = 2 if "64" in ins.flags else 1
    put, (a, b) = writer(ins.operands[0], words), (bits(machine, x, "i", words) for x in ins.operands[1:])
    return lambda r, mask: put(r, np.asarray(a(r) + b(r)), mask)


@makes("IADD3", "UIADD3")
def iadd3(machine, ins):
    dest, written, sources, read = split(ins.operands)
    if "64" in ins.flags:
        if any(register(x) != 7 for x in written) or "X" in ins.flags:
            raise NotImplementedError(ins.text)
        put, wide = writer(dest, 2), [bits(machine, x, "i", 2) for x in sources]
        return lambda r, mask: put(r, np.asarray(sum((get(r) for get in wide), U64(0))), mask)
    gets = [bits(machine, x) for x in sources]
    borrows = [x.startswith("-") for x in sources]
    carry = carries(read) if "X" in ins.flags else (lambda r: U64(0))
    put, flags = writer(dest), [flag_writer(x) for x in written]

    def run(r, mask):
        total = carry(r)
        for get, borrow in zip(gets, borrows):
            value = np.asarray(get(r)).astype(U64)
            if borrow:  # the two's complement of zero carries
                value = np.where(value == 0, U64(1 << 32), value)
            total = total + value
        put(r, total & U64(0xFFFFFFFF), mask)
        for k, flag in enumerate(flags):
            flag(r, total >= U64(k + 1 << 32), mask)
    return run


@makes("IMAD", "UIMAD")
def imad(machine, ins):
    dest, written, sources, read = split(ins.operands)
    is_signed, wide = "U32" not in ins.flags, "WIDE" in ins.flags
    high, carry = "HI" in ins.flags, carries(read) if "X" in ins.flags else (lambda r: U64(0))
    a, b = bits(machine, sources[0]), bits(machine, sources[1])
    c = bits(machine, sources[2], "i", 2 if wide or high else 1)
    put, flags = writer(dest, 2 if wide else 1), [flag_writer(x) for x in written]

    def run(r, mask):
        x, y = np.asarray(a(r)), np.asarray(b(r))
        if is_signed and (wide or high):
            product = (x.astype(I32).astype(I64) * y.astype(I32).astype(I64)).astype(U64)
        else:
            product = x.astype(U64) * y.astype(U64)
        total = product + np.asarray(c(r)).astype(U64) + carry(r)
        for flag in flags:
            flag(r, total < product, mask)
        put(r, total if wide else total >> HIGH if high else total & U64(0xFFFFFFFF), mask)
    return run


@makes("VIADD")
def viadd(machine, ins):
    put, a, b = writer(ins.operands[0]), bits(machine, ins.operands[1]), bits(machine, ins.operands[2])
    return lambda r, mask: put(r, a(r) + b(r), mask)


@makes("MOV", "UMOV", "R2UR")
def move(machine, ins):
    if "64" in ins.flags:
        put, wide = writer(ins.operands[0], 2), bits(machine, ins.operands[-1], "i", 2)
        return lambda r, mask: put(r, np.asarray(wide(r)), mask)
    put, get, is_first = writer(ins.operands[0]), bits(machine, ins.operands[-1 if ins.base == "R2UR" else 1]), \
        ins.base == "R2UR"
    if is_first:  # of the lanes that take part, the first
        return lambda r, mask: put(r, np.broadcast_to(get(r), LANES)[np.argmax(mask)], mask)
    return lambda r, mask: put(r, get(r), mask)


@makes("HFMA2", "HADD2")
def half_constant(machine, ins):
    """Used by the assembler to load constants: RZ * RZ + a pair of halves."""
    if ins.operands[1].lstrip("-") != "RZ":
        raise NotImplementedError(ins.text)
    low, high = (struct.unpack("<H", struct.pack("<e", float(x)))[0] for x in ins.operands[-1:-3:-1])
    put, value = writer(ins.operands[0]), U32(high << 16 | low)
    return lambda r, mask: put(r, value, mask)


@makes("LEA", "ULEA")
def lea(machine, ins):
    dest, written, sources, read = split(ins.operands)
    shift = U64(int(sources[-1], 16))
    carry = carries(read) if "X" in ins.flags else (lambda r: U64(0))
    a, b, is_signed = bits(machine, sources[0]), bits(machine, sources[1]), "SX32" in ins.flags
    c = bits(machine, sources[2]) if len(sources) == 4 else None
    put, flags, high = writer(dest), [flag_writer(x) for x in written], "HI" in ins.flags

    def run(r, mask):
        low = np.asarray(a(r))
        wide = low.astype(I32).astype(I64).astype(U64) if is_signed else low.astype(U64)
        if c is not None:
            wide = wide | np.asarray(c(r)).astype(U64) << HIGH
        part = (wide << shift) >> HIGH if high else (wide << shift) & U64(0xFFFFFFFF)
        total = part + np.asarray(b(r)).astype(U64) + carry(r)
        put(r, total & U64(0xFFFFFFFF), mask)
        for flag in flags:
            flag(r, total >> HIGH != 0, mask)
    return run


def lookup(table, a, b, c):
    result = None
    for i in range(8):
        if table >> i & 1:
            term = (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
            result = term if result is None else result | term
    return result if result is not None else a & ~a


@makes("LOP3", "ULOP3")
def lop3(machine, ins):
    operands = ins.operands
    flag = flag_writer(operands[0]) if is_predicate(operands[0]) else None
    operands = operands[1:] if flag else operands
    put, table = writer(operands[0]), int(operands[4], 16)
    a, b, c = (bits(machine, x) for x in operands[1:4])

    def run(r, mask):
        value = lookup(table, a(r), b(r), c(r))
        put(r, value, mask)
        if flag:
            flag(r, np.asarray(value != 0), mask)
    return run


@makes("PLOP3", "UPLOP3")
def plop3(machine, ins):
    first, second = flag_writer(ins.operands[0]), flag_writer(ins.operands[1])
    a, b, c = (predicate(x) for x in ins.operands[2:5])
    tables = int(ins.operands[5], 16), int(ins.operands[6], 16)

    def run(r, mask):
        x, y, z = (np.asarray(get(r)) for get in (a, b, c))
        values = [np.broadcast_to(lookup(t, x, y, z), LANES) for t in tables]
        first(r, values[0], mask)
        second(r, values[1], mask)
    return run


@makes("SHF", "USHF")
def shf(machine, ins):
    put, flags = writer(ins.operands[0]), ins.flags
    low, amount, high = (bits(machine, x) for x in ins.operands[1:4])
    is_wide, is_signed = any(x in flags for x in ("U64", "S64")), any(x in flags for x in ("S32", "S64"))
    limit, left, top = U64(63 if is_wide else 32), "L" in flags, "HI" in flags

    def run(r, mask):
        lo, hi = np.asarray(low(r)), np.asarray(high(r))
        n = np.asarray(amount(r)).astype(U64)
        n = n & U64(31) if "W" in flags and not is_wide else np.minimum(n, limit)
        both = hi.astype(U64) << HIGH | lo.astype(U64)
        if left:
            value = (both << n) >> HIGH if top else (lo.astype(U64) << n)
        elif top and not is_wide:
            value = (hi.astype(I32).astype(I64) >> n.astype(I64)).astype(U64) if is_signed else hi.astype(U64) >> n
        elif is_wide:
            value = (both.view(I64) >> n.astype(I64)).view(U64) if is_signed else both >> n
            value = value >> HIGH if top else value
        else:
            value = lo.astype(U64) >> n
        put(r, value & U64(0xFFFFFFFF), mask)
    return run


@makes("PRMT", "UPRMT")
def prmt(machine, ins):
    put = writer(ins.operands[0])
    a, selector, c = (bits(machine, x) for x in ins.operands[1:4])

    def run(r, mask):
        both = np.asarray(a(r)).astype(U64) | np.asarray(c(r)).astype(U64) << HIGH
        choice, value = np.asarray(selector(r)).astype(U64), U64(0)
        for i in range(4):
            k = choice >> U64(4 * i) & U64(15)
            byte = both >> (k & U64(7)) * U64(8) & U64(255)
            byte = np.where(k & U64(8) != 0, np.where(byte & U64(128) != 0, U64(255), U64(0)), byte)
            value = value | byte << U64(8 * i)
        put(r, value, mask)
    return run


@makes("SEL", "USEL", "FSEL")
def select(machine, ins):
    kind = "f" if ins.base == "FSEL" else "i"
    put, a, b = writer(ins.operands[0]), bits(machine, ins.operands[1], kind), bits(machine, ins.operands[2], kind)
    choose = predicate(ins.operands[3])
    return lambda r, mask: put(r, np.where(choose(r), a(r), b(r)), mask)


COMPARE = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
           "GE": np.greater_equal}
COMBINE = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}


def set_flags(ins):
    """Writes a comparison, combined with a predicate, and its opposite, combined likewise."""
    first, second, other = flag_writer(ins.operands[0]), flag_writer(ins.operands[1]), predicate(ins.operands[4])
    combine = next(COMBINE[x] for x in ins.flags if x in COMBINE)

    def put(r, result, mask):
        flag = other(r)
        opposite = combine(~np.asarray(result), flag)
        first(r, np.broadcast_to(combine(result, flag), LANES), mask)
        second(r, np.broadcast_to(opposite, LANES), mask)
    return put


@makes("ISETP", "UISETP")
def isetp(machine, ins):
    put, compare = set_flags(ins), COMPARE[ins.flags[0]]
    a, b = bits(machine, ins.operands[2]), bits(machine, ins.operands[3])
    is_signed = "U32" not in ins.flags
    before = predicate(ins.operands[5]) if "EX" in ins.flags else None  # of the low words

    def run(r, mask):
        x, y = np.asarray(a(r)), np.asarray(b(r))
        if is_signed:
            x, y = x.astype(I32), y.astype(I32)
        result = compare(x, y)
        if before is not None:
            low = np.asarray(before(r))
            strict = {"EQ": None, "NE": None, "GE": np.greater, "GT": np.greater, "LE": np.less, "LT": np.less}
            inner = strict[ins.flags[0]]
            if inner is None:
                result = result & low if ins.flags[0] == "EQ" else result | low
            else:
                result = inner(x, y) | (x == y) & low
        put(r, result, mask)
    return run


def extreme(is_signed, a, b, choose_least):
    x, y = np.asarray(a), np.asarray(b)
    if is_signed:
        x, y = x.astype(I32), y.astype(I32)
    return np.where(choose_least, np.minimum(x, y), np.maximum(x, y)).astype(U32)


@makes("IMNMX", "VIMNMX", "UIMNMX", "VIMNMX3", "VIADDMNMX")
def minimum(machine, ins):
    put, is_signed = writer(ins.operands[0]), "U32" not in ins.flags
    gets, choose = [bits(machine, x) for x in ins.operands[1:-1]], predicate(ins.operands[-1])
    is_sum = ins.base == "VIADDMNMX"

    def run(r, mask):
        values, least = [get(r) for get in gets], choose(r)
        if is_sum:
            values = [values[0] + values[1], values[2]]
        value = values[0]
        for other in values[1:]:
            value = extreme(is_signed, value, other, least)
        put(r, value, mask)
    return run


def bit_length(values):
    return np.array([int(x).bit_length() for x in np.broadcast_to(values, LANES)], I64)


@makes("IABS", "FLO", "UFLO", "POPC", "UPOPC", "BREV", "SGXT")
def one_operand(machine, ins):
    put, get = writer(ins.operands[0]), bits(machine, ins.operands[1])
    if ins.base == "IABS":
        return lambda r, mask: put(r, np.abs(np.asarray(get(r)).astype(I32)).astype(U32), mask)
    if ins.base in ("FLO", "UFLO"):
        if "SH" in ins.flags:
            return lambda r, mask: put(r, np.where(bit_length(get(r)) == 0, -1, 32 - bit_length(get(r))).astype(U32), mask)
        return lambda r, mask: put(r, (bit_length(get(r)) - 1).astype(U32), mask)
    if ins.base == "SGXT":
        width = int(ins.operands[2], 16)
        shift = I32(32 - width)
        return lambda r, mask: put(r, (np.asarray(get(r) << U32(shift)).astype(I32) >> shift).astype(U32), mask)
    text = (lambda x: bin(x).count("1")) if "POPC" in ins.base else (lambda x: int(format(x, "032b")[::-1], 2))
    return lambda r, mask: put(r, np.array([text(int(x)) for x in np.broadcast_to(get(r), LANES)], U32), mask)


@makes("R2P")
def r2p(machine, ins):
    source, chosen = ins.operands[1], int(ins.operands[2], 16)
    shift = int(source[-1]) * 8 if ".B" in source else 0
    get = bits(machine, source)

    def run(r, mask):
        value = get(r)
        for i in range(7):
            if chosen >> i & 1:
                np.copyto(r.P[i], value >> U32(shift + i) & U32(1) != 0, where=mask)
    return run


@makes("P2R")
def p2r(machine, ins):
    put, kept, chosen = writer(ins.operands[0]), bits(machine, ins.operands[2]), int(ins.operands[3], 16)

    def run(r, mask):
        value = sum((r.P[i].astype(U32) << U32(i) for i in range(7)), np.zeros(LANES, U32))
        put(r, value & U32(chosen) | np.asarray(kept(r)) & U32(~chosen & 0xFFFFFFFF), mask)
    return run


@makes("NOP", "YIELD", "ERRBAR", "CGAERRBAR", "ENDCOLLECTIVE", "DEPBAR", "PREEXIT", "ACQBULK")
def nothing(machine, ins):
    return lambda r, mask: None
