"""The mutants of C sources: every place where one operator, constant, condition, return or statement can be changed.
The sources are those of clang-format: binary operators stand between spaces."""
import collections
import glob
import os
import re

TOKEN = re.compile(r"""(?P<space>\s+|/\*.*?\*/|//[^\n]*)|(?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)
    |(?P<string>"(?:\\.|[^"\\])*")|(?P<char>'(?:\\.|[^'\\])*')
    |(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|(?P<name>[A-Za-z_]\w*)
    |(?P<op><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""", re.S | re.M | re.X)
SWAPS = {"compare": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
         "arith": {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "<<": ">>", ">>": "<<", "&": "|", "|": "&",
                   "^": "&", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "|=": "&=", "&=": "|=", "^=": "&=",
                   "<<=": ">>=", ">>=": "<<="},
         "logic": {"&&": "||", "||": "&&"}}
ASSIGN = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="}
KEYWORDS = set("if else for while do switch case default return break continue goto sizeof".split())

Token = collections.namedtuple("Token", "kind text begin end")
Mutant = collections.namedtuple("Mutant", "file line column kind begin end text in_function")


def tokens_of(text):
    found = [Token(m.lastgroup, m.group(), m.start(), m.end()) for m in TOKEN.finditer(text)]
    return [t for t in found if t.kind != "space"]


def partners(tokens):
    """From each opening bracket to its closing one and back, and for every token the bracket that it is in."""
    stack, other, inside = [], {}, []
    for i, token in enumerate(tokens):
        inside.append(stack[-1] if stack else None)
        if token.kind == "op" and token.text in "([{":
            stack.append(i)
        elif token.kind == "op" and token.text in ")]}" and stack:
            other[stack[-1]], other[i] = i, stack[-1]
            inside[-1] = inside[stack.pop()]
    return other, inside


class Source:
    """The mutants of one file."""

    def __init__(self, file, text):
        self.file, self.text, self.found = file, text, []
        self.tokens = tokens_of(text)
        self.other, self.inside = partners(self.tokens)
        self.functions = [(t.begin, self.tokens[self.other[i]].end) for i, t in enumerate(self.tokens)
                          if t.text == "{" and self.inside[i] is None and self.at(i - 1) == ")"]

    def at(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def add(self, kind, begin, end, text):
        line = self.text.count("\n", 0, begin) + 1
        column = begin - (self.text.rfind("\n", 0, begin) + 1) + 1
        in_function = any(first < begin < last for first, last in self.functions)
        self.found.append(Mutant(self.file, line, column, kind, begin, end, text, in_function))

    def spaced(self, token):  # the style writes binary operators between spaces, others without
        return self.text[token.begin - 1].isspace() and self.text[token.end : token.end + 1].isspace()

    def number(self, token, i):
        """Another constant; lengths in declarations of arrays are left alone."""
        if self.at(i - 1) == "[" and self.at(i + 1) == "]":
            name = i - 2
            while self.at(name) == "]":
                name = self.other[name] - 1
            if self.tokens[name - 1].kind == "name" and self.at(name - 1) not in KEYWORDS or self.at(name - 1) == "*":
                return
        if re.fullmatch(r"0+\.?0*[fF]?", token.text):
            text = token.text.replace("0", "1", 1)
        elif re.search(r"[.]|^\d+[eE]", token.text):
            text = "(2 * %s)" % token.text
        else:
            text = "(%s + 1)" % token.text
        self.add("constant", token.begin, token.end, text)

    def operator(self, token, i):
        if token.text in ("++", "--"):
            self.add("arith", token.begin, token.end, {"++": "--", "--": "++"}[token.text])
        elif self.spaced(token):
            for kind, swaps in SWAPS.items():
                if token.text in swaps:
                    self.add(kind, token.begin, token.end, swaps[token.text])
        elif token.text in "-!~" and self.tokens[i + 1].kind != "char":
            self.add("sign", token.begin, token.end, "")

    def condition(self, i):
        end = self.other.get(i + 1)
        if self.at(i) in ("if", "while") and self.at(i + 1) == "(" and end:
            begin, end = self.tokens[i + 1].begin, self.tokens[end].end
            self.add("negate", begin, end, "(!%s)" % self.text[begin:end])
            if self.at(i) == "if":
                self.add("never", begin, end, "(0 && %s)" % self.text[begin:end])

    def in_function(self, i):
        """Whether the block that token i is in holds statements, rather than members or values."""
        block = self.inside[i]
        if block is None or self.at(block) != "{":
            return False
        before = self.at(block - 1)
        if before == ")":  # of a function or of its statements; else of a compound literal
            head = self.other.get(block - 1, 0) - 1
            return self.tokens[head].kind == "name" and self.at(head) not in ("return", "sizeof")
        return before in ("else", "do") or before in (";", "}", "{", ":") and self.in_function(block)

    def begins_statement(self, i):
        before = self.at(i - 1)
        if before == ")":
            return self.at(self.other.get(i - 1, 0) - 1) in ("if", "for", "while", "switch")
        if before == ":":
            line = self.text[self.text.rfind("\n", 0, self.tokens[i - 1].begin) + 1 : self.tokens[i].begin]
            return re.fullmatch(r"\s*(case\b[^?]*|default|\w+):\s*", line) is not None
        return before in (";", "{", "}", "else", "do")

    def statement(self, i):
        """A statement begins here: without its effect."""
        end = i
        while end < len(self.tokens) and self.at(end) != ";":
            end = self.other[end] + 1 if self.at(end) in ("(", "[", "{") and end in self.other else end + 1
        if end >= len(self.tokens):
            return
        first, last = self.tokens[i], self.tokens[end]
        body = self.tokens[i:end]
        if first.text == "return" and len(body) > 1:
            value = self.text[body[1].begin : last.begin].strip()
            if not re.fullmatch(r"0|false|NULL|NDT_OK|\(.*\)\{0\}", value):
                self.add("return", body[1].begin, last.begin, "((void)(%s), 0)" % value)
        elif first.text in ("break", "continue", "goto"):
            self.add("jump", first.begin, last.begin, "")
        elif first.kind == "name" and first.text not in KEYWORDS and self.at(i + 1) == "(":
            if self.other.get(i + 1) == end - 1 and not first.text.startswith("_Static"):
                self.add("drop", first.begin, last.begin, "")
        elif first.text not in KEYWORDS:
            self.assignment(i, end)

    def assignment(self, i, end):
        at = i
        while at < end and self.at(at) not in ASSIGN:
            at = self.other[at] + 1 if self.at(at) in ("(", "[", "{") and at in self.other else at + 1
        left = "".join("v" if t.kind == "name" else t.text for t in self.tokens[i:at])
        declared = re.match(r"v\**v|v\*", left) or any(
            a.kind == b.kind == "name" for a, b in zip(self.tokens[i:at], self.tokens[i + 1 : at]))
        if at < end and at > i and not declared:
            right = self.text[self.tokens[at].end : self.tokens[end].begin].strip()
            self.add("drop", self.tokens[i].begin, self.tokens[end].begin, "(void)(%s)" % right)

    def mutants(self):
        for i, token in enumerate(self.tokens):
            if token.kind == "directive":
                define = re.match(r"\s*#\s*define\s+\w+\s+\(?(\d[\w.]*)", token.text)
                if define:
                    begin = token.begin + define.start(1)
                    self.number(Token("number", define.group(1), begin, begin + len(define.group(1))), i)
                continue
            if token.kind == "number":
                self.number(token, i)
            elif token.text in ("true", "false"):
                self.add("constant", token.begin, token.end, "false" if token.text == "true" else "true")
            elif token.kind == "char":
                self.add("constant", token.begin, token.end, "(%s + 1)" % token.text)
            elif token.kind == "op":
                self.operator(token, i)
            if token.kind == "name":
                self.condition(i)
            if self.begins_statement(i) and self.in_function(i):
                self.statement(i)
        return self.found


def mutants_of(root, folders):
    found = []
    for folder in folders:
        for path in sorted(glob.glob(os.path.join(root, folder, "**", "*.c"), recursive=True)):
            with open(path, encoding="utf-8") as file:
                found += Source(os.path.relpath(path, root), file.read()).mutants()
    return found


def change_of(text, mutant):
    """The changed lines, before and after, each on one line."""
    begin = text.rfind("\n", 0, mutant.begin) + 1
    end = text.find("\n", mutant.end)
    after = text[begin : mutant.begin] + mutant.text + text[mutant.end : end]
    return " ".join(text[begin:end].split()), " ".join(after.split())


def name_of(mutant):
    return "%s:%d:%d:%s" % mutant[:4]
