//! PTX text to tokens.

use crate::source::Span;
use logos::Logos;

#[derive(Logos, Clone, Copy, Debug, PartialEq)]
#[logos(skip r"[ \t\r\n\f]+")]
#[logos(skip(r"//[^\n]*", allow_greedy = true))]
#[logos(skip r"/\*([^*]|\*+[^*/])*\*+/")]
pub enum Token<'a> {
    /// A name, or the first word of a mnemonic or special register.
    #[regex(r"[a-zA-Z_$%][a-zA-Z0-9_$]*")]
    Word(&'a str),
    /// `.shared::cta`, `.f32`, `.x`: a directive, a modifier, a component.
    #[regex(r"\.[a-zA-Z0-9_]+(::[a-zA-Z0-9_]+)*")]
    Dotted(&'a str),
    #[regex(r"[0-9]+U?")]
    #[regex(r"0[xX][0-9a-fA-F]+U?")]
    #[regex(r"0[bB][01]+U?")]
    Integer(&'a str),
    #[regex(r"0[fF][0-9a-fA-F]{8}")]
    Float(&'a str),
    #[regex(r"0[dD][0-9a-fA-F]{16}")]
    Double(&'a str),
    #[regex(r"[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?")]
    Decimal(&'a str),
    #[regex(r#""[^"\n]*""#)]
    Text(&'a str),
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token("{")]
    BraceOpen,
    #[token("}")]
    BraceClose,
    #[token("[")]
    BracketOpen,
    #[token("]")]
    BracketClose,
    #[token("(")]
    ParenthesisOpen,
    #[token(")")]
    ParenthesisClose,
    #[token("<")]
    Less,
    #[token(">")]
    Greater,
    #[token("|")]
    Bar,
    #[token("!")]
    Exclamation,
    #[token("@")]
    At,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("=")]
    Equals,
    /// Something PTX has no use for.
    Unknown,
}

/// All tokens with their places.
pub fn tokens(text: &str) -> Vec<(Token<'_>, Span)> {
    Token::lexer(text).spanned().map(|(token, range)| (token.unwrap_or(Token::Unknown), Span::new(range))).collect()
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let text = match self {
            Token::Word(text)
            | Token::Dotted(text)
            | Token::Integer(text)
            | Token::Float(text)
            | Token::Double(text)
            | Token::Decimal(text)
            | Token::Text(text) => text,
            Token::Comma => ",",
            Token::Semicolon => ";",
            Token::Colon => ":",
            Token::BraceOpen => "{",
            Token::BraceClose => "}",
            Token::BracketOpen => "[",
            Token::BracketClose => "]",
            Token::ParenthesisOpen => "(",
            Token::ParenthesisClose => ")",
            Token::Less => "<",
            Token::Greater => ">",
            Token::Bar => "|",
            Token::Exclamation => "!",
            Token::At => "@",
            Token::Plus => "+",
            Token::Minus => "-",
            Token::Equals => "=",
            Token::Unknown => return write!(f, "a character that PTX does not use"),
        };
        write!(f, "`{text}`")
    }
}
