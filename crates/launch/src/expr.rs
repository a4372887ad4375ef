//! Integer expressions, the form of every integer in a recipe.
//!
//! `+ - * / %`, parentheses, `ceil_div(a, b)`, `min(a, b)`, `max(a, b)` and names from `[let]`. Arithmetic is checked in
//! 128 bits; `/` and `%` truncate towards zero as in Rust. Every node keeps its offset for error messages.

use std::collections::BTreeMap;
use std::fmt;

use ptx::nearest;

use crate::error::Fault;
use crate::source::Spot;

/// Longest expression in bytes; it bounds the depth of the tree and so the stack that parsing and evaluation take.
const MAX_BYTES: usize = 512;

/// The values of `[let]` names.
pub type Names = BTreeMap<String, i128>;

/// An integer expression.
///
/// ```
/// use launch::Expr;
///
/// let tiles = Expr::parse("ceil_div(n, 128) * 2")?;
/// let names = [("n".to_string(), 1000)].into();
/// assert_eq!(tiles.evaluate(&names)?, 16);
/// assert_eq!(tiles.to_string(), "ceil_div(n,128)*2");
/// # Ok::<(), launch::Fault>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expr {
    node: Node,
    spot: Spot,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Integer(i128),
    Name(String),
    Negate(Box<Expr>),
    Binary(Operator, Box<[Expr; 2]>),
    Call(Function, Box<[Expr; 2]>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    CeilDiv,
    Min,
    Max,
}

impl From<i128> for Expr {
    fn from(value: i128) -> Expr {
        Expr { node: Node::Integer(value), spot: Spot::default() }
    }
}

impl From<u32> for Expr {
    fn from(value: u32) -> Expr {
        Expr::from(i128::from(value))
    }
}

impl Expr {
    /// Reads an expression; a fault's spot is the offset in `text`.
    pub fn parse(text: &str) -> Result<Expr, Fault> {
        Expr::parse_at(text, Spot::at(0))
    }

    /// Reads an expression that stands at `base` in a larger text.
    pub(crate) fn parse_at(text: &str, base: Spot) -> Result<Expr, Fault> {
        if text.len() > MAX_BYTES {
            return Err(Fault::new(base, format!("expression has {} bytes: expected at most {MAX_BYTES}", text.len())));
        }
        let mut parser = Parser { text, position: 0, base };
        let expr = parser.sum()?;
        match parser.peek() {
            None => Ok(expr),
            Some(found) => Err(parser.fault(format!("expected an operator or the end, found `{found}`"))),
        }
    }

    /// A plain name.
    pub fn name(name: impl Into<String>) -> Expr {
        Expr { node: Node::Name(name.into()), spot: Spot::default() }
    }

    /// The same expression at another spot.
    pub(crate) fn at(mut self, spot: Spot) -> Expr {
        self.spot = spot;
        self
    }

    /// Where the expression was written.
    pub fn spot(&self) -> Spot {
        self.spot
    }

    /// The literal, where the expression is nothing but one.
    pub fn literal(&self) -> Option<i128> {
        match self.node {
            Node::Integer(value) => Some(value),
            _ => None,
        }
    }

    /// The value with the given names.
    pub fn evaluate(&self, names: &Names) -> Result<i128, Fault> {
        match &self.node {
            Node::Integer(value) => Ok(*value),
            Node::Name(name) => names.get(name).copied().ok_or_else(|| self.unknown(name, names)),
            Node::Negate(operand) => {
                operand.evaluate(names)?.checked_neg().ok_or_else(|| self.undefined("the result is out of range"))
            }
            Node::Binary(operator, operands) => {
                let [left, right] = operands.as_ref();
                self.apply(*operator, left.evaluate(names)?, right.evaluate(names)?)
            }
            Node::Call(function, operands) => {
                let [first, second] = operands.as_ref();
                self.call(*function, first.evaluate(names)?, second.evaluate(names)?)
            }
        }
    }

    fn apply(&self, operator: Operator, left: i128, right: i128) -> Result<i128, Fault> {
        if right == 0 && matches!(operator, Operator::Divide | Operator::Remainder) {
            return Err(self.undefined("division by zero"));
        }
        let result = match operator {
            Operator::Add => left.checked_add(right),
            Operator::Subtract => left.checked_sub(right),
            Operator::Multiply => left.checked_mul(right),
            Operator::Divide => left.checked_div(right),
            Operator::Remainder => left.checked_rem(right),
        };
        result.ok_or_else(|| self.undefined("the result is out of range"))
    }

    fn call(&self, function: Function, first: i128, second: i128) -> Result<i128, Fault> {
        match function {
            Function::Min => Ok(first.min(second)),
            Function::Max => Ok(first.max(second)),
            Function::CeilDiv => {
                let quotient = self.apply(Operator::Divide, first, second)?;
                let exact = self.apply(Operator::Remainder, first, second)? == 0;
                // Truncation already rounds up when the exact quotient is negative.
                let rounds_up = !exact && (first < 0) == (second < 0);
                Ok(quotient + i128::from(rounds_up))
            }
        }
    }

    fn undefined(&self, why: &str) -> Fault {
        Fault::new(self.spot, format!("cannot evaluate `{self}`: {why}"))
    }

    fn unknown(&self, name: &str, names: &Names) -> Fault {
        let help = match nearest(name, names.keys().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("add `{name} = …` under [let]"),
        };
        Fault::new(self.spot, format!("unknown name `{name}`: {help}"))
    }
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
    base: Spot,
}

impl Parser<'_> {
    fn spot(&self) -> Spot {
        Spot(self.base.0.map(|base| base + self.position))
    }

    fn fault(&self, message: String) -> Fault {
        Fault::new(self.spot(), message)
    }

    /// The next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.position..];
        self.position += rest.len() - rest.trim_start().len();
        self.text[self.position..].chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.position += wanted.len_utf8();
        }
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), Fault> {
        if self.take(wanted) {
            return Ok(());
        }
        let found = self.found();
        Err(self.fault(format!("expected `{wanted}`, found {found}")))
    }

    fn found(&mut self) -> String {
        self.peek().map_or_else(|| "the end of the expression".to_string(), |found| format!("`{found}`"))
    }

    fn sum(&mut self) -> Result<Expr, Fault> {
        self.chain(&[('+', Operator::Add), ('-', Operator::Subtract)], Parser::product)
    }

    fn product(&mut self) -> Result<Expr, Fault> {
        let operators = [('*', Operator::Multiply), ('/', Operator::Divide), ('%', Operator::Remainder)];
        self.chain(&operators, Parser::unary)
    }

    fn chain(
        &mut self,
        operators: &[(char, Operator)],
        operand: fn(&mut Self) -> Result<Expr, Fault>,
    ) -> Result<Expr, Fault> {
        let mut left = operand(self)?;
        loop {
            self.peek();
            let spot = self.spot();
            let Some((_, operator)) = operators.iter().find(|(sign, _)| self.take(*sign)) else { return Ok(left) };
            let right = operand(self)?;
            left = Expr { node: Node::Binary(*operator, Box::new([left, right])), spot };
        }
    }

    fn unary(&mut self) -> Result<Expr, Fault> {
        if self.peek() != Some('-') {
            return self.primary();
        }
        let spot = self.spot();
        self.take('-');
        let operand = self.unary()?;
        // A negative literal is one value, so that `-5` and the integer -5 are the same expression.
        let node = match operand.literal().and_then(i128::checked_neg) {
            Some(value) => Node::Integer(value),
            None => Node::Negate(Box::new(operand)),
        };
        Ok(Expr { node, spot })
    }

    fn primary(&mut self) -> Result<Expr, Fault> {
        match self.peek() {
            Some('(') => self.group(),
            Some(first) if first.is_ascii_digit() => self.integer(),
            Some(first) if first.is_ascii_alphabetic() || first == '_' => self.word(),
            _ => {
                let found = self.found();
                Err(self.fault(format!("expected a number, a name or `(`, found {found}")))
            }
        }
    }

    fn group(&mut self) -> Result<Expr, Fault> {
        self.expect('(')?;
        let inner = self.sum()?;
        self.expect(')')?;
        Ok(inner)
    }

    fn integer(&mut self) -> Result<Expr, Fault> {
        let spot = self.spot();
        let digits = self.run(|c| c.is_ascii_digit() || c == '_').replace('_', "");
        let value =
            digits.parse().map_err(|_| Fault::new(spot, format!("integer {digits} does not fit in 128 bits")))?;
        Ok(Expr { node: Node::Integer(value), spot })
    }

    fn word(&mut self) -> Result<Expr, Fault> {
        let spot = self.spot();
        let word = self.run(|c| c.is_ascii_alphanumeric() || c == '_').to_string();
        if self.peek() != Some('(') {
            return Ok(Expr { node: Node::Name(word), spot });
        }
        let Some(function) = Function::from_name(&word) else {
            return Err(Fault::new(spot, format!("unknown function `{word}`: expected ceil_div, min or max")));
        };
        self.expect('(')?;
        let first = self.sum()?;
        self.expect(',')?;
        let second = self.sum()?;
        self.expect(')')?;
        Ok(Expr { node: Node::Call(function, Box::new([first, second])), spot })
    }

    fn run(&mut self, belongs: impl Fn(char) -> bool) -> &str {
        let rest = &self.text[self.position..];
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.position += length;
        &rest[..length]
    }
}

impl Operator {
    fn sign(self) -> char {
        match self {
            Operator::Add => '+',
            Operator::Subtract => '-',
            Operator::Multiply => '*',
            Operator::Divide => '/',
            Operator::Remainder => '%',
        }
    }

    fn precedence(self) -> u8 {
        match self {
            Operator::Add | Operator::Subtract => 1,
            Operator::Multiply | Operator::Divide | Operator::Remainder => 2,
        }
    }
}

impl Function {
    fn name(self) -> &'static str {
        match self {
            Function::CeilDiv => "ceil_div",
            Function::Min => "min",
            Function::Max => "max",
        }
    }

    fn from_name(name: &str) -> Option<Function> {
        [Function::CeilDiv, Function::Min, Function::Max].into_iter().find(|function| function.name() == name)
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.print(formatter, 0)
    }
}

impl Expr {
    /// Prints with the fewest parentheses that read back to the same tree; `outer` is the precedence around it.
    fn print(&self, formatter: &mut fmt::Formatter<'_>, outer: u8) -> fmt::Result {
        match &self.node {
            Node::Integer(value) => write!(formatter, "{value}"),
            Node::Name(name) => formatter.write_str(name),
            Node::Negate(operand) => {
                formatter.write_str("-")?;
                operand.print(formatter, 3)
            }
            Node::Binary(operator, operands) => print_binary(formatter, *operator, operands, outer),
            Node::Call(function, operands) => {
                write!(formatter, "{}({},{})", function.name(), operands[0], operands[1])
            }
        }
    }
}

fn print_binary(
    formatter: &mut fmt::Formatter<'_>,
    operator: Operator,
    operands: &[Expr; 2],
    outer: u8,
) -> fmt::Result {
    let precedence = operator.precedence();
    let grouped = precedence < outer;
    if grouped {
        formatter.write_str("(")?;
    }
    operands[0].print(formatter, precedence)?;
    write!(formatter, "{}", operator.sign())?;
    operands[1].print(formatter, precedence + 1)?;
    if grouped {
        formatter.write_str(")")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A tree with its value computed beside the parser, in wide integers.
    fn trees() -> impl Strategy<Value = (String, Option<i128>)> {
        let leaf = (0i128..1000).prop_map(|value| (value.to_string(), Some(value)));
        leaf.prop_recursive(5, 48, 2, |inner| {
            (inner.clone(), inner, 0usize..8).prop_map(|((a, x), (b, y), kind)| {
                let both = x.zip(y);
                match kind {
                    0 => (format!("({a}) + ({b})"), both.map(|(x, y)| x + y)),
                    1 => (format!("({a})-({b})"), both.map(|(x, y)| x - y)),
                    2 => (format!("({a}) *({b})"), both.and_then(|(x, y)| x.checked_mul(y))),
                    3 => (format!("({a})/({b})"), both.and_then(|(x, y)| (y != 0).then(|| x / y))),
                    4 => (format!("({a})%({b})"), both.and_then(|(x, y)| (y != 0).then(|| x % y))),
                    5 => (format!("min({a}, {b})"), both.map(|(x, y)| x.min(y))),
                    6 => (format!("max({a},{b})"), both.map(|(x, y)| x.max(y))),
                    _ => (format!("ceil_div({a},{b})"), both.and_then(|(x, y)| ceiling(x, y))),
                }
            })
        })
    }

    fn ceiling(x: i128, y: i128) -> Option<i128> {
        // The least integer q with q * y >= x for y > 0, found from the Euclidean quotient.
        let (x, y) = if y < 0 { (-x, -y) } else { (x, y) };
        (y != 0).then(|| -((-x).div_euclid(y)))
    }

    proptest! {
        #[test]
        fn agrees_with_a_reference((text, value) in trees()) {
            prop_assume!(text.len() <= MAX_BYTES);
            let expr = Expr::parse(&text).unwrap();
            prop_assert_eq!(expr.evaluate(&Names::new()).ok(), value);
        }

        #[test]
        fn prints_what_it_reads((text, _) in trees()) {
            prop_assume!(text.len() <= MAX_BYTES);
            let expr = Expr::parse(&text).unwrap();
            prop_assert_eq!(Expr::parse(&expr.to_string()).unwrap(), expr);
        }

        #[test]
        fn never_panics(text in "[-+*/%(),0-9a-z_ é]{0,64}") {
            if let Ok(expr) = Expr::parse(&text) {
                let _ = expr.evaluate(&Names::new());
                prop_assert_eq!(Expr::parse(&expr.to_string()).unwrap(), expr);
            }
        }
    }

    fn failure(text: &str) -> String {
        let names = [("rows".to_string(), 4)].into();
        let fault = Expr::parse(text).and_then(|expr| expr.evaluate(&names)).unwrap_err();
        format!("{}: {}", fault.spot.0.unwrap(), fault.message)
    }

    #[test]
    fn precedence_and_signs() {
        let value = |text: &str| Expr::parse(text).unwrap().evaluate(&Names::new()).unwrap();
        assert_eq!(value("2+3*4"), 14);
        assert_eq!(value("10-3-2"), 5);
        assert_eq!(value("100/10/5"), 2);
        assert_eq!(value("-2*-3"), 6);
        assert_eq!(value("7 % 4 * 2"), 6);
        assert_eq!(value("ceil_div(-7, 2)"), -3);
    }

    #[test]
    fn failures_say_where() {
        insta::assert_snapshot!(failure("2 * (3 + "), @"9: expected a number, a name or `(`, found the end of the expression");
        insta::assert_snapshot!(failure("4 / (rows - 4)"), @"2: cannot evaluate `4/(rows-4)`: division by zero");
        insta::assert_snapshot!(failure("1 + row"), @"4: unknown name `row`: did you mean `rows`?");
        insta::assert_snapshot!(failure("1 + heads"), @"4: unknown name `heads`: add `heads = …` under [let]");
        insta::assert_snapshot!(failure("pow(2, 3)"), @"0: unknown function `pow`: expected ceil_div, min or max");
        insta::assert_snapshot!(failure("3 3"), @"2: expected an operator or the end, found `3`");
    }

    #[test]
    fn overflow_is_an_error() {
        let big = "170141183460469231731687303715884105727";
        assert!(failure(&format!("{big} * 2")).ends_with("the result is out of range"));
        assert!(failure(&format!("{big}0")).ends_with("does not fit in 128 bits"));
    }

    #[test]
    fn deep_nesting_is_refused() {
        let deep = "(".repeat(100_000);
        assert!(failure(&deep).starts_with("0: expression has 100000 bytes"));
    }
}
