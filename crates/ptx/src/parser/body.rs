//! The body of an entry: declarations, labels, scopes and instructions, one statement at a time.

use super::names::{Meaning, Names};
use super::{Outcome, Parser, order};
use crate::diagnostic::Diagnostic;
use crate::forms::{self, FORMS, UnknownForm};
use crate::ir::*;
use crate::lexer::Token;
use crate::source::{Span, Spans};
use crate::words::distance;

impl<'a> Parser<'a> {
    pub(super) fn body(&mut self, mut function: Function, mut names: Names) -> Outcome<Function> {
        self.expect(Token::BraceOpen, "`{`")?;
        let mut spans: Vec<Spans> = vec![];
        loop {
            let Some(token) = self.peek() else { return self.unexpected("`}`") };
            if token == Token::BraceClose {
                self.next += 1;
                if names.close().is_none() {
                    break;
                }
                function.body.push(Statement::Close);
                spans.push(Spans { whole: self.before(), head: self.before(), ..Spans::default() });
            } else if self.statement(&mut function, &mut names, &mut spans).is_err() {
                self.recover();
            }
        }
        self.settle_labels(&mut function, &names);
        order::by_scope(&mut function, &mut self.entry);
        self.spans.push(spans);
        Ok(function)
    }

    fn statement(&mut self, function: &mut Function, names: &mut Names, spans: &mut Vec<Spans>) -> Outcome<()> {
        let start = self.here();
        let mut place = Spans { whole: start, head: start, ..Spans::default() };
        let statement = match (self.peek(), self.peek_after(1)) {
            (Some(Token::BraceOpen), _) => self.open(function, names),
            (Some(Token::Word(name)), Some(Token::Colon)) => {
                let label = self.label(name, function, names)?;
                self.labelled(label, names)?
            }
            (Some(Token::Dotted(directive)), _) => match self.directive(directive, function, names)? {
                Some(statement) => statement,
                None => return Ok(()),
            },
            (Some(Token::Word(_) | Token::At), _) => {
                let instruction = self.instruction(names, &mut place)?;
                Statement::Instruction(instruction)
            }
            (Some(Token::Semicolon), _) => {
                self.next += 1;
                return Ok(());
            }
            _ => return self.unexpected("an instruction, a label or a declaration"),
        };
        place.whole = start.to(self.before());
        function.body.push(statement);
        spans.push(place);
        Ok(())
    }

    fn open(&mut self, function: &mut Function, names: &mut Names) -> Statement {
        self.next += 1;
        let scope = ScopeId(function.scopes.len() as u32);
        function.scopes.push(Scope { parent: names.scope() });
        names.open(scope);
        Statement::Open(scope)
    }

    /// Behind `label:`: a table that instructions name by the label, or nothing.
    fn labelled(&mut self, label: LabelId, names: &mut Names) -> Outcome<Statement> {
        if self.take_dotted(".callprototype") {
            return Ok(Statement::Prototype(label, Box::new(self.prototype()?)));
        }
        if self.take_dotted(".branchtargets") {
            return Ok(Statement::BranchTargets(label, self.listed(|parser| parser.mentioned(names))?));
        }
        if self.take_dotted(".calltargets") {
            return Ok(Statement::CallTargets(label, self.listed(|parser| parser.function_name(names))?));
        }
        Ok(Statement::Label(label))
    }

    /// Items up to the `;`.
    fn listed<T>(&mut self, mut item: impl FnMut(&mut Self) -> Outcome<T>) -> Outcome<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.take(Token::Comma) {
            items.push(item(self)?);
        }
        self.expect(Token::Semicolon, "`;`")?;
        Ok(items)
    }

    fn function_name(&mut self, names: &Names) -> Outcome<FunctionId> {
        let name = self.word("the name of a function")?;
        match names.resolve(name) {
            Some(Meaning::Symbol(Symbol::Function(id))) => Ok(id),
            _ => self.undeclared(name, names),
        }
    }

    fn label(&mut self, name: &str, function: &mut Function, names: &mut Names) -> Outcome<LabelId> {
        let at = self.here();
        self.next += 2;
        let id = LabelId(function.labels.len() as u32);
        if !names.define_label(name, id) {
            return self.fail(Diagnostic::new(format!("label `{name}` is defined twice"), at, "the second one"));
        }
        function.labels.push(Label { name: name.into(), scope: names.scope() });
        Ok(id)
    }

    /// Declarations leave no statement; `.loc` and `.pragma` do.
    fn directive(&mut self, directive: &str, function: &mut Function, names: &mut Names) -> Outcome<Option<Statement>> {
        match directive {
            ".reg" => {
                self.next += 1;
                self.registers(function, names)?;
                Ok(None)
            }
            ".shared" | ".local" | ".global" | ".const" | ".param" => {
                for (variable, place) in self.variable(names, Linkage::Internal)? {
                    self.refuse_late_hiding(function, names, &variable.name, place)?;
                    let id = LocalId(function.variables.len() as u32);
                    if !names.declare(&variable.name, Meaning::Symbol(Symbol::Local(id))) {
                        let message = format!("`{}` is declared twice in this scope", variable.name);
                        return self.fail(Diagnostic::new(message, place, "the second one"));
                    }
                    function.variables.push(variable);
                    self.entry.variables.push(place);
                }
                Ok(None)
            }
            ".loc" => self.location().map(Some),
            ".pragma" => Ok(Some(Statement::Pragma(self.pragma()?))),
            other => {
                let message = format!("directive `{other}` is not supported inside an entry");
                self.fail(Diagnostic::new(message, self.here(), "this directive").unsupported())
            }
        }
    }

    /// The IR keeps declarations by scope, not by statement: a name must not change its meaning within one.
    pub(super) fn refuse_late_hiding(
        &mut self,
        function: &Function,
        names: &Names,
        name: &str,
        at: Span,
    ) -> Outcome<()> {
        let late = !matches!(function.body.last(), None | Some(Statement::Open(_)));
        if !late || !names.hides(name) {
            return Ok(());
        }
        let message = format!("`{name}` hides an outer `{name}` from the middle of its scope on");
        let error = Diagnostic::new(message, at, "declared behind a statement");
        self.fail(error.help("declare it at the start of the scope, or give it another name").unsupported())
    }

    /// `.loc file line column[, function_name label+0, inlined_at file line column]`; where it was inlined is not kept.
    fn location(&mut self) -> Outcome<Statement> {
        self.next += 1;
        let file = self.number("a file number")?;
        let line = self.number("a line")?;
        let column = self.number("a column")?;
        while self.take(Token::Comma) {
            match self.word("`function_name` or `inlined_at`")? {
                "function_name" => {
                    self.word("a label")?;
                    if self.take(Token::Plus) {
                        self.number("an offset")?;
                    }
                }
                "inlined_at" => {
                    for what in ["a file number", "a line", "a column"] {
                        self.number(what)?;
                    }
                }
                _ => {
                    self.next -= 1;
                    return self.unexpected("`function_name` or `inlined_at`");
                }
            }
        }
        Ok(Statement::Location { file, line, column })
    }

    fn instruction(&mut self, names: &mut Names, place: &mut Spans) -> Outcome<Instruction> {
        let guard = if self.take(Token::At) { Some(self.guard(names)?) } else { None };
        let (mnemonic, head) = self.mnemonic()?;
        place.head = head;
        let operands = self.operands(&mnemonic, names, &mut place.operands)?;
        if self.peek() != Some(Token::Semicolon) {
            return self.unexpected("`,` or `;`");
        }
        let form = forms::select(&mnemonic, &operands);
        let (form, modifiers) = form.or_else(|error| self.fail(unknown_form(error, head, self.before())))?;
        self.next += 1;
        Ok(Instruction { guard, form, modifiers, operands })
    }

    fn guard(&mut self, names: &Names) -> Outcome<Guard> {
        let negated = self.take(Token::Exclamation);
        let name = self.word("a predicate")?;
        match names.resolve(name) {
            Some(Meaning::Register(register)) => Ok(Guard { register, negated }),
            _ => self.undeclared(name, names),
        }
    }

    /// A word and the dotted words behind it, spelled as one.
    fn mnemonic(&mut self) -> Outcome<(String, Span)> {
        let mut mnemonic = self.word("an instruction")?.to_string();
        let mut span = self.before();
        while let Some(Token::Dotted(modifier)) = self.peek() {
            mnemonic.push_str(modifier);
            span = span.to(self.here());
            self.next += 1;
        }
        Ok((mnemonic, span))
    }

    /// Replaces the numbers of mentions by the labels they mean.
    fn settle_labels(&mut self, function: &mut Function, names: &Names) {
        let mut labels = vec![];
        for mention in &names.mentions {
            let label = names.find_label(mention, &function.scopes);
            if label.is_none() {
                let message = format!("label `{}` is not defined", mention.name);
                self.fail::<()>(Diagnostic::new(message, mention.span, "no such label in this entry")).ok();
            }
            labels.push(label.unwrap_or(LabelId(0)));
        }
        let settle = |label: &mut LabelId| *label = labels[label.0 as usize];
        for statement in &mut function.body {
            match statement {
                Statement::BranchTargets(_, targets) => targets.iter_mut().for_each(settle),
                Statement::Instruction(instruction) => instruction.operands.iter_mut().for_each(|operand| {
                    if let Operand::Label(label) = operand {
                        settle(label);
                    }
                }),
                _ => {}
            }
        }
    }
}

fn unknown_form(error: UnknownForm, head: Span, end: Span) -> Diagnostic {
    let message = error.to_string();
    match error {
        UnknownForm::Mnemonic(mnemonic) => {
            let list = "`veriflash explain forms` lists the forms that veriflash knows";
            let help = match nearest_instruction(&mnemonic) {
                Some(near) => format!("the nearest instruction is `{near}`: did you mean it? {list}"),
                None => list.into(),
            };
            Diagnostic::new(message, head, "unknown instruction form").help(help).unsupported()
        }
        UnknownForm::Operands { .. } => Diagnostic::new(message, head.to(end), "these operands do not fit"),
    }
}

/// The instruction whose name, up to the first modifier, differs from an unknown one in at most every third letter.
fn nearest_instruction(mnemonic: &str) -> Option<String> {
    let name = |text: &str| text.split(['.', '{', '(']).next().unwrap_or_default().to_string();
    let (unknown, known) = (name(mnemonic), FORMS.iter().map(|form| name(&form.spelling.to_string())));
    let near = known.map(|known| (distance(&known, &unknown), known));
    near.filter(|(edits, _)| *edits > 0 && edits * 3 <= unknown.len()).min().map(|(_, known)| known)
}
