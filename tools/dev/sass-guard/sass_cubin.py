"""A cubin: its symbols, constant banks and resources from the ELF file, its instructions from cuobjdump."""
import re
import struct
import subprocess

INSTRUCTION = re.compile(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s+/\* (0x[0-9a-f]+) \*/")
SECOND_WORD = re.compile(r"\s+/\* (0x[0-9a-f]+) \*/")
PREDICATED = re.compile(r"(?:@(!?U?P\w+)\s+)?(\S+)\s*(.*)$")
RESOURCE = re.compile(r"(REG|STACK|SHARED|LOCAL):(\d+)")
UNDEFINED_BY_ASSEMBLER = re.compile(r"^$|^\.nv\.|^__nv_reserved|^vprintf$")


class Instruction:
    """One instruction. stall, write_bar, read_bar, wait_mask: the control code, which the assembler sets."""

    __slots__ = ("pc", "text", "predicate", "opcode", "base", "flags", "operands", "stall", "write_bar", "read_bar",
                 "wait_mask", "handler", "guard", "latency")

    def __init__(self, pc, text):
        self.pc, self.text, self.handler = pc, text, None
        self.predicate, self.opcode, rest = PREDICATED.match(text).groups()
        parts = self.opcode.split(".")
        self.base, self.flags = parts[0], parts[1:]
        self.operands = [x.strip().replace(".reuse", "") for x in re.split(r",(?![^\[]*\])", rest)] if rest else []

    def set_control(self, second_word):
        code = second_word >> 41
        self.stall, self.write_bar, self.read_bar = code & 15, code >> 5 & 7, code >> 8 & 7
        self.wait_mask = code >> 11 & 63


class Kernel:
    """An entry point with the functions that it calls, which follow it in the same section."""

    def __init__(self, name):
        self.name = name
        self.instructions = []  # in their order; number i is at 16 * i
        self.functions = {}     # name -> (first address, size)
        self.registers = self.stack = self.shared = self.spills = 0  # bytes but for registers


class Cubin:
    def __init__(self, path, cuobjdump, arch):
        self.path, self.arch = path, arch
        with open(path, "rb") as file:
            self.data = file.read()
        self._read_sections()
        self._read_symbols()
        self._read_instructions(cuobjdump)
        self._read_resources(cuobjdump)
        self._set_functions()

    def _read_sections(self):
        header = struct.unpack_from("<16sHHIQQQIHHHHHH", self.data)
        offset, size, count, names_at = header[6], header[11], header[12], header[13]
        raw = [struct.unpack_from("<IIQQQQIIQQ", self.data, offset + i * size) for i in range(count)]
        strings = raw[names_at][4]
        self.sections = []
        for name, kind, _, _, at, length, link, info, _, _ in raw:
            self.sections.append({"name": self._text(strings + name), "kind": kind, "at": at, "size": length,
                                  "link": link, "info": info})
        self.by_name = {s["name"]: s for s in self.sections}

    def _text(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode()

    def content(self, name):
        section = self.by_name.get(name)
        return self.data[section["at"]:section["at"] + section["size"]] if section and section["kind"] != 8 else b""

    def _read_symbols(self):
        table = self.by_name[".symtab"]
        strings = self.sections[table["link"]]["at"]
        self.symbols = []
        for at in range(table["at"], table["at"] + table["size"], 24):
            name, info, other, index, value, size = struct.unpack_from("<IBBHQQ", self.data, at)
            self.symbols.append({"name": self._text(strings + name), "kind": info & 15, "bind": info >> 4,
                                 "section": index, "value": value, "size": size, "other": other})

    def undefined(self):
        """Symbols that the driver has to resolve when it loads the module."""
        return sorted({s["name"] for s in self.symbols
                       if s["section"] == 0 and not UNDEFINED_BY_ASSEMBLER.match(s["name"])})

    def relocations(self, section):
        """(offset, symbol, addend) of 64-bit addresses in a section of data."""
        for prefix, step, form in ((".rela", 24, "<QQq"), (".rel", 16, "<QQ")):
            content = self.content(prefix + section)
            for at in range(0, len(content), step):
                entry = struct.unpack_from(form, content, at)
                yield entry[0], self.symbols[entry[1] >> 32], entry[2] if step == 24 else 0

    def _read_instructions(self, cuobjdump):
        text = subprocess.run([cuobjdump, "-sass", self.path], check=True, capture_output=True, text=True).stdout
        self.kernels, kernel, last = {}, None, None
        for line in text.splitlines():
            if "Function :" in line:
                kernel = Kernel(line.split(":", 1)[1].strip())
                self.kernels[kernel.name] = kernel
                continue
            match = INSTRUCTION.match(line)
            if match and kernel:
                last = Instruction(int(match.group(1), 16), match.group(2))
                kernel.instructions.append(last)
                continue
            match = SECOND_WORD.match(line)
            if match and last:
                last.set_control(int(match.group(1), 16))
                last = None

    def _read_resources(self, cuobjdump):
        text = subprocess.run([cuobjdump, "-res-usage", self.path], check=True, capture_output=True, text=True).stdout
        for name, rest in re.findall(r"Function (\S+):\s*\n\s*(.*)", text):
            if name in self.kernels:
                used = dict(RESOURCE.findall(rest))
                kernel = self.kernels[name]
                kernel.registers, kernel.stack, kernel.shared = (int(used[k]) for k in ("REG", "STACK", "SHARED"))

    def _set_functions(self):
        for symbol in self.symbols:
            if symbol["kind"] == 2 and symbol["section"] != 0:
                owner = self.sections[symbol["section"]]["name"]
                kernel = self.kernels.get(owner[len(".text."):])
                if kernel and symbol["name"] != kernel.name:
                    kernel.functions[symbol["name"]] = (symbol["value"], symbol["size"])

    def set_spills(self, log):
        """From the messages of ptxas -v: bytes stored and loaded."""
        for name, stores, loads in re.findall(r"Function properties for (\S+)\s*\n.*?(\d+) bytes spill stores, "
                                              r"(\d+) bytes spill loads", log):
            if name in self.kernels:
                self.kernels[name].spills = int(stores) + int(loads)
