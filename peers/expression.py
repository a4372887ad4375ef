"""Integer expressions, the form of every integer in a recipe (docs/recipe.md).

`+ - * / %`, parentheses, `ceil_div(a, b)`, `min(a, b)`, `max(a, b)` and names from `[let]`; `/` and `%` truncate
towards zero.
"""

import re

TOKEN = re.compile(r"\s*([0-9][0-9_]*|[A-Za-z_][A-Za-z0-9_]*|[-+*/%(),])")


class ExpressionError(ValueError):
    """An expression that cannot be read or has no value."""


def evaluate(expression, names):
    """The value of an integer, or of the text of an expression, with the given names."""
    if isinstance(expression, bool) or not isinstance(expression, (int, str)):
        raise ExpressionError(f"expected an integer or an expression, found {expression!r}")
    if isinstance(expression, int):
        return expression
    try:
        return Parser(expression, names).value()
    except ExpressionError as error:
        raise ExpressionError(f"cannot evaluate `{expression}`: {error}") from None


class Parser:
    """Recursive descent that computes as it reads."""

    def __init__(self, text, names):
        self.tokens = split(text)
        self.names = names

    def value(self):
        result = self.sum()
        if self.tokens:
            raise ExpressionError(f"expected an operator or the end, found {self.found()}")
        return result

    def sum(self):
        return self.chain({"+": lambda a, b: a + b, "-": lambda a, b: a - b}, self.product)

    def product(self):
        return self.chain({"*": lambda a, b: a * b, "/": divide, "%": remainder}, self.unary)

    def chain(self, operators, operand):
        left = operand()
        while self.tokens and self.tokens[0] in operators:
            left = operators[self.tokens.pop(0)](left, operand())
        return left

    def unary(self):
        return -self.unary() if self.take("-") else self.primary()

    def primary(self):
        if self.take("("):
            inner = self.sum()
            self.expect(")")
            return inner
        if not self.tokens or self.tokens[0] in "+*/%),":
            raise ExpressionError(f"expected a number, a name or `(`, found {self.found()}")
        token = self.tokens.pop(0)
        if token[0].isdigit():
            return int(token.replace("_", ""))
        return self.call(token) if self.take("(") else self.name(token)

    def call(self, name):
        if name not in FUNCTIONS:
            raise ExpressionError(f"unknown function `{name}`: expected one of {', '.join(FUNCTIONS)}")
        first = self.sum()
        self.expect(",")
        second = self.sum()
        self.expect(")")
        return FUNCTIONS[name](first, second)

    def name(self, name):
        if name not in self.names:
            raise ExpressionError(f"unknown name `{name}`")
        return self.names[name]

    def take(self, token):
        found = self.tokens[:1] == [token]
        if found:
            self.tokens.pop(0)
        return found

    def expect(self, token):
        if not self.take(token):
            raise ExpressionError(f"expected `{token}`, found {self.found()}")

    def found(self):
        return f"`{self.tokens[0]}`" if self.tokens else "the end"


def split(text):
    tokens, position, end = [], 0, len(text.rstrip())
    while position < end:
        token = TOKEN.match(text, position)
        if not token:
            raise ExpressionError(f"unexpected `{text[position:].strip()[0]}`")
        tokens.append(token[1])
        position = token.end()
    return tokens


def divide(left, right):
    if right == 0:
        raise ExpressionError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def remainder(left, right):
    return left - right * divide(left, right)


def ceil_div(left, right):
    if right == 0:
        raise ExpressionError("division by zero")
    return -(-left // right)


FUNCTIONS = {"ceil_div": ceil_div, "min": min, "max": max}
