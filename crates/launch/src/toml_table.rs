//! Walking parsed TOML by hand: every fault knows its offset, and an unknown key its nearest neighbour.

use ptx::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::buffer::Float;
use crate::error::Fault;
use crate::expr::Expr;
use crate::recipe::Number;
use crate::source::Spot;

/// A value and the text it was read from.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    value: &'a Spanned<DeValue<'a>>,
    text: &'a str,
}

/// A table, how messages name it, and the text it was read from.
#[derive(Clone)]
pub(crate) struct Table<'a> {
    entries: &'a DeTable<'a>,
    pub(crate) name: String,
    pub(crate) spot: Spot,
    text: &'a str,
}

impl<'a> Table<'a> {
    pub(crate) fn root(document: &'a Spanned<DeTable<'a>>, text: &'a str) -> Table<'a> {
        Table { entries: document.get_ref(), name: "the recipe".into(), spot: Spot::at(0), text }
    }

    /// Refuses keys that are not in the list.
    pub(crate) fn allow(&self, known: &[&str]) -> Result<(), Fault> {
        let unknown = self.entries.keys().find(|key| !known.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown else { return Ok(()) };
        let word = key.get_ref().as_ref();
        let help = match nearest(word, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("expected one of {}", known.join(", ")),
        };
        Err(Fault::new(Spot::at(key.span().start), format!("unknown key `{word}` in {}: {help}", self.name)))
    }

    pub(crate) fn get(&self, key: &str) -> Option<Item<'a>> {
        self.entries.get(key).map(|value| Item { value, text: self.text })
    }

    pub(crate) fn need(&self, key: &str) -> Result<Item<'a>, Fault> {
        self.get(key).ok_or_else(|| Fault::new(self.spot, format!("{} has no `{key}`: add one", self.name)))
    }

    /// Entries in the order of the text, with the spot of each key.
    pub(crate) fn entries(&self) -> Vec<(&'a str, Spot, Item<'a>)> {
        let item = |value| Item { value, text: self.text };
        let mut entries: Vec<_> = self.entries.iter().map(|(key, value)| (key, item(value))).collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        entries.into_iter().map(|(key, item)| (key.get_ref().as_ref(), Spot::at(key.span().start), item)).collect()
    }

    /// The value of an optional key, read by `read`.
    pub(crate) fn optional<T>(
        &self,
        key: &str,
        read: impl FnOnce(Item<'a>) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        self.get(key).map(read).transpose()
    }

    /// The value of an optional word such as `"128B"`, or its default.
    pub(crate) fn word<T: std::str::FromStr<Err = String> + Default>(&self, key: &str) -> Result<T, Fault> {
        Ok(self.optional(key, |item| item.word())?.unwrap_or_default())
    }
}

impl<'a> Item<'a> {
    pub(crate) fn spot(self) -> Spot {
        Spot::at(self.value.span().start)
    }

    pub(crate) fn fault(self, message: impl Into<String>) -> Fault {
        Fault::new(self.spot(), message)
    }

    fn wrong(self, expected: &str) -> Fault {
        let found = match self.value.get_ref() {
            DeValue::String(text) => format!("the string \"{text}\""),
            DeValue::Integer(value) => format!("the integer {value}"),
            DeValue::Float(value) => format!("the float {value}"),
            DeValue::Boolean(value) => value.to_string(),
            DeValue::Datetime(value) => format!("the date {value}"),
            DeValue::Array(_) => "a list".into(),
            DeValue::Table(_) => "a table".into(),
        };
        self.fault(format!("expected {expected}, found {found}"))
    }

    pub(crate) fn table(self, name: impl Into<String>) -> Result<Table<'a>, Fault> {
        match self.value.get_ref() {
            DeValue::Table(entries) => Ok(Table { entries, name: name.into(), spot: self.spot(), text: self.text }),
            _ => Err(self.wrong("a table")),
        }
    }

    pub(crate) fn list(self) -> Result<Vec<Item<'a>>, Fault> {
        match self.value.get_ref() {
            DeValue::Array(items) => Ok(items.iter().map(|value| Item { value, text: self.text }).collect()),
            _ => Err(self.wrong("a list")),
        }
    }

    pub(crate) fn is_list(self) -> bool {
        matches!(self.value.get_ref(), DeValue::Array(_))
    }

    pub(crate) fn is_table(self) -> bool {
        matches!(self.value.get_ref(), DeValue::Table(_))
    }

    pub(crate) fn string(self) -> Result<&'a str, Fault> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.wrong("a string")),
        }
    }

    pub(crate) fn truth(self) -> Result<bool, Fault> {
        match self.value.get_ref() {
            DeValue::Boolean(truth) => Ok(*truth),
            _ => Err(self.wrong("`true` or `false`")),
        }
    }

    /// Where a string's content starts: after the quotes when the text holds it letter by letter.
    pub(crate) fn content_spot(self) -> Spot {
        let span = self.value.span();
        let raw = self.text.get(span.clone()).unwrap_or_default();
        let DeValue::String(content) = self.value.get_ref() else { return Spot::at(span.start) };
        // One quote, three, or three and the line break after them, which TOML drops.
        let holds = |start: &usize| {
            let quotes = (*start).min(3);
            raw.len().checked_sub(quotes).and_then(|end| raw.get(*start..end)) == Some(content.as_ref())
        };
        Spot::at(span.start + [1, 3, 4].iter().find(|start| holds(start)).unwrap_or(&0))
    }

    /// One of a list of words.
    pub(crate) fn word<T: std::str::FromStr<Err = String>>(self) -> Result<T, Fault> {
        self.string()?.parse().map_err(|message: String| self.fault(message))
    }

    pub(crate) fn is_true(self) -> bool {
        matches!(self.value.get_ref(), DeValue::Boolean(true))
    }

    /// An integer, or a string that holds an expression.
    pub(crate) fn expr(self) -> Result<Expr, Fault> {
        match self.value.get_ref() {
            DeValue::String(text) => Expr::parse_at(text, self.content_spot()),
            DeValue::Integer(value) => {
                let parsed = i128::from_str_radix(value.as_str(), value.radix());
                let value = parsed.map_err(|_| self.fault(format!("integer {value} does not fit in 128 bits")))?;
                Ok(Expr::from(value).at(self.spot()))
            }
            _ => Err(self.wrong("an integer or an expression")),
        }
    }

    /// A float, an integer, or a string that holds an expression.
    pub(crate) fn number(self) -> Result<Number, Fault> {
        match self.value.get_ref() {
            DeValue::Float(value) => {
                let parsed =
                    value.as_str().parse().map_err(|_| self.fault(format!("cannot read the float {value}")))?;
                Ok(Number::Float(Float(parsed)))
            }
            DeValue::String(text) => Number::parse_at(text, self.content_spot()),
            _ => Ok(Number::Integer(self.expr()?)),
        }
    }

    pub(crate) fn exprs(self) -> Result<Vec<Expr>, Fault> {
        self.list()?.into_iter().map(Item::expr).collect()
    }

    /// A list of exactly `N` integers.
    pub(crate) fn exprs_of<const N: usize>(self) -> Result<[Expr; N], Fault> {
        let exprs = self.exprs()?;
        let found = exprs.len();
        exprs.try_into().map_err(|_| self.fault(format!("list has {found} entries: expected {N}")))
    }
}
