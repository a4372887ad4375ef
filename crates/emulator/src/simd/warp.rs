//! Runs straight-line code of one fragment: one kernel after the other, and branches.

use super::Level;
use super::code::{Code, Kernel, NO_MEETING, Operation, UNGUARDED};
use super::kernels::{self, Functions};
use super::lanes::File;
use super::memory::View;
use super::step::Context;
use crate::machine::Registers;

/// A fragment that runs as far as kernels go.
pub struct Straight<'a> {
    pub code: &'a Code,
    pub registers: &'a mut Registers,
    /// Its lanes.
    pub mask: u32,
    /// The next step.
    pub next: u32,
    /// Where it must stop: others wait there.
    pub stop: u32,
    /// Instructions it may run.
    pub budget: u64,
    /// Does it run steps, too, that checks watch?
    pub through: bool,
    /// May it run first one side of a branch that parts, and then the other?
    pub parts: bool,
    /// The branch inside of which it has ended.
    pub parted: Option<Parted>,
    pub memory: View<'a>,
}

/// A branch that has parted lanes: those that fall through run first, then those that jump.
#[derive(Clone, Copy, Debug)]
pub struct Parted {
    /// All that came to the branch.
    pub whole: u32,
    /// Those that run. The others wait at the meeting point, but for those of `waits`.
    pub runs: u32,
    /// Those that have not begun; they begin at `target`.
    pub waits: u32,
    pub target: u32,
    pub meeting: u32,
    /// Where all of them must stop.
    pub outer: u32,
}

impl Straight<'_> {
    /// Runs until a step that the kernels do not do, the stop, or the end of the budget; returns how many instructions.
    pub fn run(&mut self, level: Level) -> u64 {
        let Registers { chunks, predicates, .. } = &mut *self.registers;
        assert_eq!((chunks.len(), predicates.len()), self.code.sizes(), "a register file of another program");
        // SAFETY: `Code` has checked its places against these sizes.
        let file = unsafe { File::new(chunks, predicates) };
        let Straight { code, mask, next, stop, through, parts, .. } = *self;
        let functions = kernels::functions(level, self.memory.detector.is_some());
        let context = Context { code, file, memory: &mut self.memory };
        let mut runner = Runner { functions, context, mask, next, stop, through, parts, parted: None };
        let executed = runner.run(self.budget);
        (self.next, self.parted) = (runner.next, runner.parted);
        executed
    }
}

/// Lanes that run, where they are, and where they stop.
type State = (u32, u32, u32);

struct Runner<'a, 'm> {
    /// For vector instructions that this machine has.
    functions: &'static Functions,
    context: Context<'a, 'm>,
    mask: u32,
    next: u32,
    stop: u32,
    through: bool,
    parts: bool,
    parted: Option<Parted>,
}

impl Runner<'_, '_> {
    fn run(&mut self, budget: u64) -> u64 {
        let code = self.context.code;
        let operations = if self.through { code.operations() } else { code.unwatched() };
        // In registers of their own: whatever the kernels write might lie where `self` is, for all the compiler knows.
        let (mut all, mut stop, mut next, mut executed) = (self.mask, self.stop, self.next, 0);
        while executed < budget {
            if next == stop {
                let Some(state) = self.arrive() else { break };
                (all, next, stop) = state;
                continue;
            }
            let Some(operation) = operations.get(next as usize) else { break };
            let mask = match operation.guard {
                UNGUARDED => all,
                guard => all & (self.context.file.predicate(guard / 2) ^ (guard & 1).wrapping_neg()),
            };
            if operation.kernel > Kernel::Branch {
                let function = self.functions[operation.kernel as usize];
                // SAFETY: the level that they were chosen for is one that this machine has.
                if !unsafe { function(&mut self.context, operation, mask) } {
                    break;
                }
                (next, executed) = (next + 1, executed + 1);
                continue;
            }
            match operation.kernel {
                // Labels are no instructions.
                Kernel::Pass => next += 1,
                Kernel::Branch if mask == 0 => (next, executed) = (next + 1, executed + 1),
                Kernel::Branch if mask == all => (next, executed) = (operation.extra, executed + 1),
                Kernel::Branch => {
                    let Some(state) = self.part(operation, (all, next, stop), mask) else { break };
                    (all, next, stop) = state;
                    executed += 1;
                }
                _ => break,
            }
        }
        self.next = next;
        if let Some(parted) = &mut self.parted {
            parted.runs = all;
        }
        executed
    }

    /// A branch that only the lanes of `taken` take. The state of those that go on; none if the definition must do it.
    #[inline(never)]
    fn part(&mut self, branch: &Operation, (all, next, stop): State, taken: u32) -> Option<State> {
        let (target, meeting) = (branch.extra, branch.a);
        if !self.parts || meeting == NO_MEETING {
            return None;
        }
        match self.parted {
            None => {
                let runs = all & !taken;
                self.parted = Some(Parted { whole: all, runs, waits: taken, target, meeting, outer: stop });
                Some((runs, next + 1, meeting))
            }
            // A loop that lanes leave one after the other: those that do are where everybody meets.
            Some(Parted { waits: 0, meeting: same, .. }) if same == meeting && next + 1 == meeting => {
                Some((taken, target, stop))
            }
            Some(Parted { waits: 0, meeting: same, .. }) if same == meeting && target == meeting => {
                Some((all & !taken, next + 1, stop))
            }
            _ => None,
        }
    }

    /// The lanes that ran have come to where they stop: the state of those that go on, if any do.
    #[inline(never)]
    fn arrive(&mut self) -> Option<State> {
        let parted = self.parted.as_mut()?;
        let Parted { whole, waits, target, meeting, outer, .. } = *parted;
        if waits != 0 {
            parted.waits = 0;
            return Some((waits, target, meeting));
        }
        self.parted = None;
        Some((whole, meeting, outer))
    }
}
