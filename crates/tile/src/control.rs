//! Loops and branches. `for` and `if` of Rust run while generating; these run on the GPU.

use crate::builder::{Builder, Line, Reach, ScopeKind, define_pure, fresh, with};
use crate::error::{BuildError, Place};
use crate::values::{Pred, Repr, Type, U32, Value, Var};
use ptx::{Guard, LabelId, Operand};
use std::ops::Range;
use std::panic::Location;

/// What `for_each` goes through. The type decides: `0..4u32` is unrolled, a range of [`U32`] is a loop.
pub trait Trips {
    #[track_caller]
    fn run(self, body: &mut dyn FnMut(U32));
}

#[track_caller]
pub fn for_each(trips: impl Trips, mut body: impl FnMut(U32)) {
    trips.run(&mut body);
}

impl Trips for Range<u32> {
    fn run(self, body: &mut dyn FnMut(U32)) {
        self.for_each(|trip| body(trip.into()));
    }
}

impl Trips for Range<U32> {
    /// A loop. Its body runs twice while generating: the first run is a rehearsal whose code is thrown away.
    /// A value that the body hands to its own next pass through a Rust variable is thus found, not miscompiled.
    #[track_caller]
    fn run(self, body: &mut dyn FnMut(U32)) {
        self.run_as(None, body);
    }
}

/// A loop that the assembler leaves one, and does not lay out pass by pass: for roles with few registers.
pub struct Rolled(pub Range<U32>);

impl Trips for Rolled {
    #[track_caller]
    fn run(self, body: &mut dyn FnMut(U32)) {
        self.0.run_as(Some("nounroll"), body);
    }
}

trait Loop {
    #[track_caller]
    fn run_as(self, pragma: Option<&'static str>, body: &mut dyn FnMut(U32));
}

impl Loop for Range<U32> {
    fn run_as(self, pragma: Option<&'static str>, body: &mut dyn FnMut(U32)) {
        let at = Location::caller();
        let operands = [self.start.operand(), self.end.operand()];
        let (reach, before) = with(|b| (b.reach_of(&operands), b.snapshot()));
        rehearse(reach, at, || body(fresh::<u32>(None).reaching(reach)));
        with(|b| b.meet(&before, "loop body", at));
        let (top, end) = with(|b| (b.label("loop"), b.label("loop_end")));
        // The trip belongs to the loop: behind it, the register has gone one too far.
        with(|b| b.scopes.open(ScopeKind::Loop, reach, at));
        let mut trip = Var::new("trip", self.start);
        branch(self.start.lt(self.end), false, end, at);
        place(top);
        with(|b| b.lines.extend(pragma.map(Line::Pragma)));
        body(trip.raw().reaching(reach));
        trip += 1;
        branch(trip.raw().lt(self.end), true, top, at);
        with(|b| b.scopes.close());
        place(end);
        with(|b| b.meet(&before, "loop body", at));
        // What is needed behind the loop is computed again: shared, it would hold a register all the way through.
        with(Builder::forget_shared);
    }
}

/// Runs the body for its effects on the pipelines, and throws its code away.
fn rehearse(reach: Reach, at: Place, body: impl FnOnce()) {
    let (lines, seldom, labels) = with(|b| (b.lines.len(), b.seldom.len(), b.labels.len()));
    scope(ScopeKind::Rehearsal, reach, at, body);
    with(|b| {
        b.lines.truncate(lines);
        b.seldom.truncate(seldom);
        b.labels.truncate(labels);
    });
}

/// Runs `body` if `begins` holds, and as long as what it returns does. As with `for_each`, a rehearsal comes first.
#[track_caller]
pub fn repeat_while(begins: Pred, mut body: impl FnMut() -> Pred) {
    let at = Location::caller();
    let operand = begins.operand();
    let (reach, before) = with(|b| (b.reach_of(&[operand]), b.snapshot()));
    rehearse(reach, at, || {
        body();
    });
    with(|b| b.meet(&before, "loop body", at));
    let (top, end) = with(|b| (b.label("loop"), b.label("loop_end")));
    branch(begins, false, end, at);
    place(top);
    scope(ScopeKind::Loop, reach, at, || branch(body(), true, top, at));
    place(end);
    with(|b| b.meet(&before, "loop body", at));
    with(Builder::forget_shared);
}

/// Asks until it holds, and does nothing else meanwhile.
#[track_caller]
pub(crate) fn again_until(holds: impl FnOnce() -> Pred) {
    let at = Location::caller();
    let top = with(|b| b.label("wait"));
    place(top);
    scope(ScopeKind::Loop, Reach::Lane, at, || branch(holds(), false, top, at));
}

/// Runs `body` on the GPU if `condition` holds.
#[track_caller]
pub fn when(condition: Pred, body: impl FnOnce()) {
    let at = Location::caller();
    match condition.known() {
        Some(true) => body(),
        Some(false) => {}
        None => {
            let operand = condition.operand();
            let (reach, before, end) = with(|b| (b.reach_of(&[operand]), b.snapshot(), b.label("end")));
            branch(condition, false, end, at);
            scope(ScopeKind::Branch, reach, at, body);
            place(end);
            with(|b| b.meet(&before, "branch", at));
        }
    }
}

/// The same for what is seldom needed: its code stands behind the kernel, out of the way of what goes on.
#[track_caller]
pub fn when_seldom(condition: Pred, body: impl FnOnce()) {
    let at = Location::caller();
    let operand = condition.operand();
    let (reach, before) = with(|b| (b.reach_of(&[operand]), b.snapshot()));
    let (seldom, back) = with(|b| (b.label("seldom"), b.label("back")));
    branch(condition, true, seldom, at);
    let first = with(|b| b.lines.len());
    place(seldom);
    scope(ScopeKind::Branch, reach, at, body);
    branch(true.into(), true, back, at);
    with(|b| {
        let moved = b.lines.split_off(first);
        b.seldom.extend(moved);
    });
    place(back);
    with(|b| b.meet(&before, "branch", at));
}

/// Runs one of two on the GPU.
#[track_caller]
pub fn either(condition: Pred, yes: impl FnOnce(), no: impl FnOnce()) {
    let at = Location::caller();
    match condition.known() {
        Some(true) => return yes(),
        Some(false) => return no(),
        None => {}
    }
    let operand = condition.operand();
    let (reach, before) = with(|b| (b.reach_of(&[operand]), b.snapshot()));
    let (otherwise, end) = with(|b| (b.label("else"), b.label("end")));
    branch(condition, false, otherwise, at);
    scope(ScopeKind::Branch, reach, at, yes);
    with(|b| b.meet(&before, "branch", at));
    branch(true.into(), true, end, at);
    place(otherwise);
    scope(ScopeKind::Branch, reach, at, no);
    place(end);
    with(|b| b.meet(&before, "branch", at));
}

/// Runs `body` on the warps that `members` tells, always the same: what one such branch makes, the next may use.
#[track_caller]
pub(crate) fn only<R>(members: Pred, body: impl FnOnce() -> R) -> R {
    let at = Location::caller();
    let operand = members.operand();
    let (reach, end) = with(|b| (b.reach_of(&[operand]), b.label("end")));
    branch(members, false, end, at);
    let again = with(|b| b.scopes.open_again(members.repr(), reach, at));
    let result = body();
    with(|b| b.scopes.close_again(again));
    place(end);
    result
}

/// Ends the kernel for blocks of which `condition` holds, before anything is under way.
#[track_caller]
pub fn leave_when(condition: Pred) {
    let at = Location::caller();
    let operand = condition.operand();
    with(|b| {
        if b.reach_of(&[operand]) < Reach::Block || b.scopes.inside().is_some() || b.has_pipelines() {
            let help = "ask for what all its threads agree on, outside of loops and branches, before rings are made";
            BuildError::new("a block leaves as a whole, and first of all", at).help(help).raise()
        }
    });
    match guard(condition, true) {
        Some(guard) => with(|b| b.push_guarded(guard, "ret", vec![], at)),
        None if condition.known() == Some(true) => {
            BuildError::new("every block leaves here: the condition is known to hold", at).raise()
        }
        None => {}
    }
}

/// `body` without a branch: each of its instructions is predicated. For a few stores, and no values.
#[track_caller]
pub fn predicated(condition: Pred, body: impl FnOnce()) {
    let at = Location::caller();
    let Some(guard) = guard(condition, true) else { return when(condition, body) };
    condition.operand(); // It must be in reach.
    let (first, before) = with(|b| (b.lines.len(), b.snapshot()));
    scope(ScopeKind::Branch, Reach::Lane, at, body);
    with(|b| b.meet(&before, "predicated block", at));
    with(|b| {
        for line in &mut b.lines[first..] {
            match line {
                Line::Instruction(instruction, _) if instruction.guard.is_none() => instruction.guard = Some(guard),
                _ => BuildError::new("a predicated block has branches inside", at).help("use `when`").raise(),
            }
        }
    });
}

/// The value of one of two branches.
#[track_caller]
pub fn choose<T: Type>(condition: Pred, yes: impl FnOnce() -> Value<T>, no: impl FnOnce() -> Value<T>) -> Value<T> {
    match condition.known() {
        Some(true) => yes(),
        Some(false) => no(),
        None => {
            let mut result = Var::unset("choice");
            when(condition, || result.set(yes()));
            when(!condition, || result.set(no()));
            result.get()
        }
    }
}

/// One of two values, without a branch.
#[track_caller]
pub fn select<T: Type>(condition: Pred, yes: impl Into<Value<T>>, no: impl Into<Value<T>>) -> Value<T> {
    let (yes, no) = (yes.into(), no.into());
    match condition.known() {
        Some(true) => yes,
        Some(false) => no,
        None => define_pure(&format!("selp.{}", T::NAME), vec![yes.operand(), no.operand(), condition.operand()]),
    }
}

#[track_caller]
fn scope<R>(kind: ScopeKind, reach: Reach, at: Place, body: impl FnOnce() -> R) -> R {
    with(|b| b.scopes.open(kind, reach, at));
    let result = body();
    with(|b| b.scopes.close());
    result
}

fn place(label: LabelId) {
    with(|b| b.lines.push(Line::Label(label)));
}

fn guard(condition: Pred, wanted: bool) -> Option<Guard> {
    match condition.repr() {
        Repr::Register(id) => Some(Guard { register: ptx::RegisterId(id.index), negated: !wanted }),
        Repr::Constant(_) => None,
    }
}

/// Jumps to `label` where `condition` is `wanted`.
fn branch(condition: Pred, wanted: bool, label: LabelId, at: Place) {
    let target = vec![Operand::Label(label)];
    match (guard(condition, wanted), condition.known()) {
        (Some(guard), _) => with(|b| b.push_guarded(guard, "bra", target, at)),
        (None, Some(known)) if known == wanted => with(|b| b.push("bra", target, at)),
        _ => {}
    }
}
