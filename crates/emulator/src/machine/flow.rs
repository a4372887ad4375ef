//! Where lanes that a branch separates meet again: its immediate post-dominator.

use ptx::forms::Control;
use ptx::{Function, LabelId, Op, Operand, Statement};

/// For each statement of the body that is a branch, the statement where its two ways meet; none if they never do.
pub struct Flow {
    meets: Vec<Option<u32>>,
    /// For each statement, how far lanes that meet there may go on apart.
    late: Vec<u32>,
    targets: Vec<Vec<u32>>,
    blocks: Blocks,
}

impl Flow {
    pub fn new(function: &Function) -> Flow {
        let targets = branch_targets(function);
        let blocks = Blocks::new(function, &targets);
        let dominators = blocks.post_dominators();
        let meets = (0..function.body.len()).map(|at| {
            targets[at].first()?;
            let next = dominators[blocks.of(at)]?;
            blocks.starts.get(next).map(|start| *start as u32)
        });
        Flow { meets: meets.collect(), late: late_places(function), targets, blocks }
    }

    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Where a branch may go.
    pub fn targets(&self, statement: usize) -> &[u32] {
        &self.targets[statement]
    }

    pub fn meeting_point(&self, statement: usize) -> Option<u32> {
        self.meets[statement]
    }

    /// The last statement up to which lanes may stay apart: behind the meeting point, no further than where all of the
    /// warp must be together, where control flow goes on, or where others may meet. The same for all who meet there.
    pub fn late_meeting_point(&self, statement: usize) -> Option<u32> {
        self.meets[statement].map(|place| self.late[place as usize])
    }
}

/// For each statement, the first one from there on that lanes do not pass alone; the meeting point may be a label.
fn late_places(function: &Function) -> Vec<u32> {
    let body = &function.body;
    let mut late: Vec<u32> = (0..=body.len() as u32).collect();
    for at in (0..body.len()).rev() {
        let next_is_label = matches!(body.get(at + 1), Some(Statement::Label(_)));
        if is_private(&body[at]) && at + 1 < body.len() && !next_is_label {
            late[at] = late[at + 1];
        }
    }
    late
}

/// What lanes do for themselves, whoever is with them.
fn is_private(statement: &Statement) -> bool {
    match statement {
        Statement::Instruction(one) => matches!(
            one.op(),
            Op::Integer(_)
                | Op::Float(_)
                | Op::Half(_)
                | Op::Compare(_)
                | Op::Convert(_)
                | Op::Movement(_)
                | Op::Atomic(_)
                | Op::Fence(_)
        ),
        _ => true,
    }
}

fn branch_targets(function: &Function) -> Vec<Vec<u32>> {
    let mut places = vec![0; function.labels.len()];
    for (at, statement) in function.body.iter().enumerate() {
        if let Statement::Label(label) = statement {
            places[label.0 as usize] = at as u32;
        }
    }
    let target = |statement: &Statement| match statement {
        Statement::Instruction(one) => match (one.op(), &one.operands[..]) {
            (Op::Control(Control::Branch), [Operand::Label(label)]) => vec![places[label.0 as usize]],
            (Op::Control(Control::BranchTable), [_, Operand::Label(table)]) => {
                table_of(function, *table).iter().map(|label| places[label.0 as usize]).collect()
            }
            _ => vec![],
        },
        _ => vec![],
    };
    function.body.iter().map(target).collect()
}

/// The labels that `.branchtargets` lists under a name.
fn table_of(function: &Function, table: LabelId) -> &[LabelId] {
    let listed = function.body.iter().find_map(|statement| match statement {
        Statement::BranchTargets(label, targets) if *label == table => Some(targets.as_slice()),
        _ => None,
    });
    listed.unwrap_or_default()
}

/// Basic blocks: where each begins, and which may follow it. The block behind the last stands for the exit.
pub struct Blocks {
    pub starts: Vec<usize>,
    pub successors: Vec<Vec<usize>>,
}

impl Blocks {
    fn new(function: &Function, targets: &[Vec<u32>]) -> Blocks {
        let body = &function.body;
        let mut leads = vec![false; body.len() + 1];
        leads[0] = true;
        for at in 0..body.len() {
            let ends = ends_block(&body[at]);
            leads[at + 1] |= ends;
            leads[at] |= matches!(body[at], Statement::Label(_));
        }
        let starts: Vec<usize> = (0..body.len()).filter(|at| leads[*at]).collect();
        let mut blocks = Blocks { starts, successors: vec![] };
        blocks.successors = (0..blocks.starts.len()).map(|block| blocks.following(body, targets, block)).collect();
        blocks.successors.push(vec![]);
        blocks
    }

    pub fn of(&self, statement: usize) -> usize {
        self.starts.partition_point(|start| *start <= statement) - 1
    }

    /// Where the block of a statement ends, in a body of so many statements.
    pub fn end_of(&self, statement: usize, body: usize) -> usize {
        self.starts.get(self.of(statement) + 1).copied().unwrap_or(body)
    }

    fn exit(&self) -> usize {
        self.starts.len()
    }

    fn following(&self, body: &[Statement], targets: &[Vec<u32>], block: usize) -> Vec<usize> {
        let end = self.starts.get(block + 1).copied().unwrap_or(body.len());
        let last = end - 1;
        let jumps = targets[last].iter().map(|target| self.of(*target as usize));
        let leaves = leaves_kernel(&body[last]).then_some(self.exit());
        let falls = (!always_jumps(&body[last])).then_some(block + 1);
        jumps.chain(leaves).chain(falls).collect()
    }

    /// Immediate post-dominators, by the iteration of Cooper, Harvey and Kennedy on the reversed graph.
    fn post_dominators(&self) -> Vec<Option<usize>> {
        let order = self.reverse_postorder();
        let mut rank = vec![usize::MAX; self.successors.len()];
        order.iter().enumerate().for_each(|(position, block)| rank[*block] = position);
        let mut dominator: Vec<Option<usize>> = vec![None; self.successors.len()];
        dominator[self.exit()] = Some(self.exit());
        let mut changed = true;
        while changed {
            changed = false;
            for block in order.iter().copied().filter(|block| *block != self.exit()) {
                let known = self.successors[block].iter().copied().filter(|next| dominator[*next].is_some());
                let new = known.reduce(|a, b| intersect(&dominator, &rank, a, b));
                changed |= new != dominator[block];
                dominator[block] = new;
            }
        }
        dominator[self.exit()] = None;
        dominator
    }

    /// Blocks from the exit backwards, each before those that only it leads away from.
    fn reverse_postorder(&self) -> Vec<usize> {
        let mut before: Vec<Vec<usize>> = vec![vec![]; self.successors.len()];
        for (block, next) in self.successors.iter().enumerate() {
            next.iter().for_each(|next| before[*next].push(block));
        }
        let mut seen = vec![false; before.len()];
        let mut order = vec![];
        let mut stack = vec![(self.exit(), 0)];
        seen[self.exit()] = true;
        while let Some((block, index)) = stack.pop() {
            match before[block].get(index) {
                Some(next) => {
                    stack.push((block, index + 1));
                    if !std::mem::replace(&mut seen[*next], true) {
                        stack.push((*next, 0));
                    }
                }
                None => order.push(block),
            }
        }
        order.reverse();
        order
    }
}

fn intersect(dominator: &[Option<usize>], rank: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        while rank[a] > rank[b] {
            a = dominator[a].unwrap_or(b);
        }
        while rank[b] > rank[a] {
            b = dominator[b].unwrap_or(a);
        }
    }
    a
}

fn control(statement: &Statement) -> Option<(Control, bool)> {
    match statement {
        Statement::Instruction(one) => match one.op() {
            Op::Control(op) => Some((op, one.guard.is_some())),
            _ => None,
        },
        _ => None,
    }
}

fn ends_block(statement: &Statement) -> bool {
    control(statement).is_some()
}

fn leaves_kernel(statement: &Statement) -> bool {
    matches!(control(statement), Some((Control::Return | Control::Exit | Control::Trap, _)))
}

fn always_jumps(statement: &Statement) -> bool {
    let falls_through = |op| matches!(op, Control::Call | Control::CallIndirect | Control::Breakpoint);
    matches!(control(statement), Some((op, false)) if !falls_through(op))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meeting_line(body: &str) -> Vec<Option<u32>> {
        let head = ".version 7.0\n.target sm_80\n.address_size 64\n.entry k() { .reg .pred %p;\n";
        let parsed = ptx::parse(&ptx::Source::new("test", format!("{head}{body}}}"))).unwrap();
        let function = &parsed.module.functions[0];
        let flow = Flow::new(function);
        let branches = (0..function.body.len()).filter(|at| !flow.targets(*at).is_empty());
        branches.map(|at| flow.meeting_point(at)).collect()
    }

    #[test]
    fn an_if_meets_at_its_end() {
        assert_eq!(meeting_line("@%p bra END;\nbar.sync 0;\nEND: ret;"), [Some(2)]);
    }

    #[test]
    fn lanes_stay_apart_until_they_must_be_together() {
        let body = "@%p bra END;\nbar.sync 0;\nEND: membar.cta;\nmembar.cta;\nbar.sync 0;\nret;";
        let head = ".version 7.0\n.target sm_80\n.address_size 64\n.entry k() { .reg .pred %p;\n";
        let parsed = ptx::parse(&ptx::Source::new("test", format!("{head}{body}}}"))).unwrap();
        let flow = Flow::new(&parsed.module.functions[0]);
        assert_eq!((flow.meeting_point(0), flow.late_meeting_point(0)), (Some(2), Some(5)));
    }

    #[test]
    fn two_arms_meet_behind_both() {
        assert_eq!(meeting_line("@%p bra A;\nbar.sync 0;\nbra END;\nA: bar.sync 1;\nEND: ret;"), [Some(5), Some(5)]);
    }

    #[test]
    fn a_loop_meets_behind_it() {
        assert_eq!(meeting_line("A: bar.sync 0;\n@%p bra A;\nret;"), [Some(3)]);
    }

    #[test]
    fn ways_that_both_leave_never_meet() {
        assert_eq!(meeting_line("@%p bra A;\nret;\nA: ret;"), [None]);
    }

    #[test]
    fn the_ways_of_a_table_meet_behind_all() {
        let body = "T: .branchtargets A, B;\nbrx.idx 0, T;\nA: bra END;\nB: bar.sync 0;\nEND: ret;";
        assert_eq!(meeting_line(body), [Some(6), Some(6)]);
    }

    #[test]
    fn an_endless_loop_meets_nothing() {
        assert_eq!(meeting_line("A: @%p bra A;\nbra A;"), [None, None]);
    }
}
