//! What is wrong with a text, and how it is shown.

use crate::source::{Source, Span};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

/// One thing wrong with a PTX text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub kind: Kind,
    pub message: String,
    pub span: Span,
    /// What stands at the span.
    pub label: String,
    pub help: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The text is not PTX.
    Malformed,
    /// PTX, as far as we know, but a form or directive that veriflash does not have.
    Unsupported,
}

/// At least one thing wrong with a source.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    pub source: Source,
    pub all: Vec<Diagnostic>,
}

impl Diagnostic {
    pub fn new(message: impl Into<String>, span: Span, label: impl Into<String>) -> Diagnostic {
        Diagnostic { kind: Kind::Malformed, message: message.into(), span, label: label.into(), help: None }
    }

    pub fn help(self, help: impl Into<String>) -> Diagnostic {
        Diagnostic { help: Some(help.into()), ..self }
    }

    pub fn unsupported(self) -> Diagnostic {
        Diagnostic { kind: Kind::Unsupported, ..self }
    }

    /// With the lines of the source around it; `renderer` decides about colour.
    pub fn render(&self, source: &Source, renderer: &Renderer) -> String {
        let annotation = AnnotationKind::Primary.span(self.span.range()).label(self.label.as_str());
        let snippet = Snippet::source(source.text.as_str()).path(source.name.as_str()).annotation(annotation);
        let mut group = Group::with_title(Level::ERROR.primary_title(self.message.as_str())).element(snippet);
        if let Some(help) = &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }
}

impl Diagnostics {
    /// Is there nothing worse than something we do not support?
    pub fn only_unsupported(&self) -> bool {
        self.all.iter().all(|one| one.kind == Kind::Unsupported)
    }

    pub fn render(&self, renderer: &Renderer) -> String {
        let rendered: Vec<_> = self.all.iter().map(|one| one.render(&self.source, renderer)).collect();
        rendered.join("\n")
    }
}

impl std::fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.render(&Renderer::plain()))
    }
}

impl std::error::Error for Diagnostics {}
