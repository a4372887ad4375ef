//! Text to a module, by recursive descent. Errors are collected: after one, reading goes on behind the next `;`.

mod body;
mod declarations;
mod functions;
mod names;
mod operands;
mod order;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::Module;
use crate::lexer::{Token, tokens};
use crate::source::{Source, Span, Spans};

/// A module with the text it was read from.
#[derive(Clone, Debug)]
pub struct Parsed {
    pub module: Module,
    pub source: Source,
    /// For each function, the place of each statement of its body.
    pub spans: Vec<Vec<Spans>>,
    pub places: Places,
}

/// Where the declarations of a module stand.
#[derive(Clone, Debug, Default)]
pub struct Places {
    pub version: Span,
    pub variables: Vec<Span>,
    pub entries: Vec<EntryPlaces>,
}

/// Where an entry's name and declarations stand; in the order of `Function`.
#[derive(Clone, Debug, Default)]
pub struct EntryPlaces {
    pub name: Span,
    pub tuning: Vec<Span>,
    pub registers: Vec<Span>,
    pub variables: Vec<Span>,
}

/// Reads a PTX text.
pub fn parse(source: &Source) -> Result<Parsed, Diagnostics> {
    let mut parser = Parser::new(source);
    let module = parser.module();
    match module {
        Some(module) if parser.errors.is_empty() => {
            Ok(Parsed { module, source: source.clone(), spans: parser.spans, places: parser.places })
        }
        _ => Err(Diagnostics { source: source.clone(), all: parser.errors }),
    }
}

/// An error was noted in `Parser::errors`; the caller recovers or gives up.
struct Noted;

type Outcome<T> = Result<T, Noted>;

struct Parser<'a> {
    tokens: Vec<(Token<'a>, Span)>,
    next: usize,
    end: Span,
    errors: Vec<Diagnostic>,
    spans: Vec<Vec<Spans>>,
    places: Places,
    /// Of the entry that is being read.
    entry: EntryPlaces,
}

/// After this many errors, the rest is hardly news.
const MAX_ERRORS: usize = 20;

impl<'a> Parser<'a> {
    fn new(source: &'a Source) -> Parser<'a> {
        let end = Span::new(source.text.len()..source.text.len());
        Parser {
            tokens: tokens(&source.text),
            next: 0,
            end,
            errors: vec![],
            spans: vec![],
            places: Places::default(),
            entry: EntryPlaces::default(),
        }
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.next).map(|(token, _)| *token)
    }

    fn peek_after(&self, distance: usize) -> Option<Token<'a>> {
        self.tokens.get(self.next + distance).map(|(token, _)| *token)
    }

    /// Where the next token stands.
    fn here(&self) -> Span {
        self.tokens.get(self.next).map_or(self.end, |(_, span)| *span)
    }

    /// Where the last token stood.
    fn before(&self) -> Span {
        self.next.checked_sub(1).and_then(|index| self.tokens.get(index)).map_or(Span::default(), |(_, span)| *span)
    }

    fn advance(&mut self) -> Option<Token<'a>> {
        let token = self.peek()?;
        self.next += 1;
        Some(token)
    }

    fn take(&mut self, token: Token) -> bool {
        let found = self.peek() == Some(token);
        self.next += found as usize;
        found
    }

    /// Takes `.name` if it comes next.
    fn take_dotted(&mut self, name: &str) -> bool {
        self.take(Token::Dotted(name))
    }

    fn expect(&mut self, token: Token<'static>, what: &str) -> Outcome<()> {
        if self.take(token) { Ok(()) } else { self.unexpected(what) }
    }

    fn unexpected<T>(&mut self, expected: &str) -> Outcome<T> {
        let found = self.peek().map_or("the end of the file".to_string(), |token| format!("{token}"));
        let message = format!("expected {expected}, found {found}");
        self.fail(Diagnostic::new(message, self.here(), format!("expected {expected}")))
    }

    fn fail<T>(&mut self, diagnostic: Diagnostic) -> Outcome<T> {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(diagnostic);
        }
        Err(Noted)
    }

    /// Skips behind the next `;`, or up to a `}` or the end.
    fn recover(&mut self) {
        while let Some(token) = self.peek() {
            if token == Token::BraceClose {
                return;
            }
            self.next += 1;
            if token == Token::Semicolon {
                return;
            }
        }
    }

    /// Skips behind the next `;` outside braces, or behind a whole block: one error per entry that cannot be read.
    fn recover_outside(&mut self) {
        let mut depth = 0;
        while let Some(token) = self.advance() {
            depth += match token {
                Token::BraceOpen => 1,
                Token::BraceClose => -1,
                _ => 0,
            };
            if depth < 0 || depth == 0 && matches!(token, Token::Semicolon | Token::BraceClose) {
                return;
            }
        }
    }

    fn word(&mut self, what: &str) -> Outcome<&'a str> {
        match self.peek() {
            Some(Token::Word(word)) => {
                self.next += 1;
                Ok(word)
            }
            _ => self.unexpected(what),
        }
    }

    fn dotted(&mut self, what: &str) -> Outcome<&'a str> {
        match self.peek() {
            Some(Token::Dotted(text)) => {
                self.next += 1;
                Ok(&text[1..])
            }
            _ => self.unexpected(what),
        }
    }

    /// A number that fits 32 bits: counts, sizes, alignments.
    fn number(&mut self, what: &str) -> Outcome<u32> {
        let at = self.here();
        let value = match self.peek() {
            Some(Token::Integer(text)) => integer(text),
            _ => return self.unexpected(what),
        };
        self.next += 1;
        match value.and_then(|value| u32::try_from(value).ok()) {
            Some(value) => Ok(value),
            None => self.fail(Diagnostic::new(format!("{what} is too large"), at, "expected at most 4294967295")),
        }
    }

    fn text(&mut self, what: &str) -> Outcome<&'a str> {
        match self.peek() {
            Some(Token::Text(text)) => {
                self.next += 1;
                Ok(text.trim_matches('"'))
            }
            _ => self.unexpected(what),
        }
    }
}

/// The value of an integer literal; none if it does not fit 64 bits.
fn integer(text: &str) -> Option<u64> {
    let text = text.trim_end_matches('U');
    let radix = |prefix: &[&str], radix| {
        prefix.iter().find_map(|prefix| text.strip_prefix(prefix)).map(|digits| u64::from_str_radix(digits, radix).ok())
    };
    radix(&["0x", "0X"], 16)
        .or_else(|| radix(&["0b", "0B"], 2))
        .or_else(|| (text.len() > 1).then(|| radix(&["0"], 8)).flatten())
        .unwrap_or_else(|| text.parse().ok())
}
