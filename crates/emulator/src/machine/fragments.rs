//! Which steps touch registers of `wgmma` products while those may be in flight, or between a fence and a product that
//! should have had another? In correct kernels none do, and nothing is watched at run time.

use super::flow::Flow;
use ptx::forms::Wgmma;
use ptx::{Function, Immediate, Instruction, Op, Operand, RegisterId, Statement};
use std::collections::{BTreeMap, BTreeSet};

/// Registers of products that a step touches and that are watched there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    pub reads: Vec<RegisterId>,
    pub writes: Vec<RegisterId>,
}

impl Touched {
    fn of(instruction: &Instruction, watched: impl Fn(RegisterId) -> bool) -> Touched {
        let mut touched = Touched::default();
        instruction.registers(|spec| spec.reads, |register, _| touched.reads.push(register));
        instruction.registers(|spec| spec.defines, |register, _| touched.writes.push(register));
        touched.reads.retain(|register| watched(*register));
        touched.writes.retain(|register| watched(*register));
        touched
    }

    fn all(&self) -> impl Iterator<Item = RegisterId> {
        self.reads.iter().chain(&self.writes).copied()
    }
}

/// What is known of a register of a product on every way that leads somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    /// Groups that were committed since the last product that uses it; none if all such products have been waited for.
    /// The fewest of all ways.
    groups: Option<u8>,
    /// A thread may have touched it since the last fence.
    touched: bool,
}

const UNUSED: Known = Known { groups: None, touched: false };

impl Known {
    fn meet(self, other: Known) -> Known {
        let groups = match (self.groups, other.groups) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        Known { groups, touched: self.touched || other.touched }
    }
}

/// For each statement which registers of products are watched there; nothing for products, which always are.
pub fn touched(function: &Function, flow: &Flow) -> Vec<Option<Box<Touched>>> {
    let Some(analysis) = Analysis::new(function, flow) else { return vec![] };
    let (in_flight, unfenced) = analysis.doubts();
    let watched = |(at, statement): (usize, &Statement)| {
        let Statement::Instruction(instruction) = statement else { return None };
        let at_risk = in_flight.get(&at);
        let watched = |register| unfenced.contains(&register) || at_risk.is_some_and(|all| all.contains(&register));
        let touched = Touched::of(instruction, watched);
        (!matches!(instruction.op(), Op::Wgmma(_)) && touched != Touched::default()).then(|| Box::new(touched))
    };
    function.body.iter().enumerate().map(watched).collect()
}

struct Analysis<'a> {
    function: &'a Function,
    flow: &'a Flow,
    /// The places of the products' registers in a state.
    places: BTreeMap<RegisterId, usize>,
}

type State = Vec<Known>;

impl<'a> Analysis<'a> {
    /// None for functions without products.
    fn new(function: &'a Function, flow: &'a Flow) -> Option<Analysis<'a>> {
        let products = function.instructions().filter(|(_, instruction)| is_product(instruction));
        let registers: BTreeSet<RegisterId> = products.flat_map(|(_, product)| fragments(product)).collect();
        let places = registers.into_iter().zip(0..).collect::<BTreeMap<_, _>>();
        (!places.is_empty()).then_some(Analysis { function, flow, places })
    }

    /// By statement the registers that it touches while they may be in flight, and the registers that a product uses
    /// though a thread may have touched them behind the last fence.
    fn doubts(&self) -> (BTreeMap<usize, BTreeSet<RegisterId>>, BTreeSet<RegisterId>) {
        let (mut in_flight, mut unfenced) = (BTreeMap::new(), BTreeSet::new());
        for (block, state) in self.at_start().into_iter().enumerate() {
            let Some(mut state) = state else { continue };
            for (at, instruction) in self.instructions(block) {
                let touched = Touched::of(instruction, |register| self.places.contains_key(&register));
                let known = |register: &RegisterId| state[self.places[register]];
                if is_product(instruction) {
                    unfenced.extend(fragments(instruction).into_iter().filter(|register| known(register).touched));
                } else {
                    let flying: BTreeSet<_> = touched.all().filter(|one| known(one).groups.is_some()).collect();
                    in_flight.extend((!flying.is_empty()).then_some((at, flying)));
                }
                self.pass(instruction, &mut state);
            }
        }
        (in_flight, unfenced)
    }

    /// What is known where a block begins; none for blocks that nothing leads to.
    fn at_start(&self) -> Vec<Option<State>> {
        let blocks = self.flow.blocks();
        let mut at_start: Vec<Option<State>> = vec![None; blocks.starts.len()];
        at_start[0] = Some(vec![UNUSED; self.places.len()]);
        let mut waiting = BTreeSet::from([0]);
        while let Some(block) = waiting.pop_first() {
            let Some(mut state) = at_start[block].clone() else { continue };
            self.instructions(block).for_each(|(_, instruction)| self.pass(instruction, &mut state));
            for next in blocks.successors[block].iter().filter(|next| **next < blocks.starts.len()) {
                let met = match &at_start[*next] {
                    Some(known) => known.iter().zip(&state).map(|(one, two)| one.meet(*two)).collect(),
                    None => state.clone(),
                };
                if at_start[*next].as_ref() != Some(&met) {
                    at_start[*next] = Some(met);
                    waiting.insert(*next);
                }
            }
        }
        at_start
    }

    /// What an instruction changes. What a guard may prevent settles nothing.
    fn pass(&self, instruction: &Instruction, state: &mut State) {
        let sure = instruction.guard.is_none();
        match instruction.op() {
            Op::Wgmma(Wgmma::Fence) if sure => state.iter_mut().for_each(|known| known.touched = false),
            Op::Wgmma(Wgmma::Commit) if sure => {
                state
                    .iter_mut()
                    .flat_map(|known| &mut known.groups)
                    .for_each(|groups| *groups = groups.saturating_add(1));
            }
            Op::Wgmma(Wgmma::WaitGroup) if sure => {
                let pending = pending(instruction);
                state
                    .iter_mut()
                    .for_each(|known| known.groups = known.groups.filter(|groups| u64::from(*groups) <= pending));
            }
            Op::Wgmma(Wgmma::Fence | Wgmma::Commit | Wgmma::WaitGroup) => {}
            Op::Wgmma(_) => {
                fragments(instruction).iter().for_each(|register| state[self.places[register]].groups = Some(0));
            }
            _ => {
                let touched = Touched::of(instruction, |register| self.places.contains_key(&register));
                touched.all().for_each(|register| state[self.places[&register]].touched = true);
            }
        }
    }

    fn instructions(&self, block: usize) -> impl Iterator<Item = (usize, &'a Instruction)> {
        let starts = &self.flow.blocks().starts;
        let end = starts.get(block + 1).copied().unwrap_or(self.function.body.len());
        let function = self.function;
        (starts[block]..end).filter_map(|at| match &function.body[at] {
            Statement::Instruction(instruction) => Some((at, instruction)),
            _ => None,
        })
    }
}

fn is_product(instruction: &Instruction) -> bool {
    let Op::Wgmma(op) = instruction.op() else { return false };
    !matches!(op, Wgmma::Fence | Wgmma::Commit | Wgmma::WaitGroup)
}

/// The accumulators of a product, and the registers of A.
fn fragments(product: &Instruction) -> Vec<RegisterId> {
    let vectors = product.operands.iter().take(2).filter_map(|operand| match operand {
        Operand::Vector(parts) => Some(parts),
        _ => None,
    });
    let register = |part: &Operand| match part {
        Operand::Register(register) => Some(*register),
        _ => None,
    };
    vectors.flatten().filter_map(register).collect()
}

fn pending(wait: &Instruction) -> u64 {
    match wait.operands.first() {
        Some(Operand::Immediate(Immediate::Integer(count))) => *count as u64,
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRODUCT: &str =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %desc, %desc, 0, 1, 1, 0, 0;\n";

    /// The lines of a body that are watched; its first is 0.
    fn watched(body: &str) -> Vec<usize> {
        let head = ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k() { .reg .f32 %d<4>; .reg .b64 %desc; .reg .pred %p;\n";
        let body = body.replace("PRODUCT", PRODUCT.trim_end());
        let parsed = ptx::parse(&ptx::Source::new("test", format!("{head}{body}\nret;}}"))).unwrap();
        let function = &parsed.module.functions[0];
        let all = touched(function, &Flow::new(function));
        all.iter().enumerate().filter(|(_, touched)| touched.is_some()).map(|(at, _)| at).collect()
    }

    const FENCE: &str = "wgmma.fence.sync.aligned;";
    const COMMIT: &str = "wgmma.commit_group.sync.aligned;";

    #[test]
    fn behind_the_wait_nothing_is_watched() {
        let wait = format!("{FENCE}\nPRODUCT\n{COMMIT}\nwgmma.wait_group.sync.aligned 0;\nadd.f32 %d0, %d0, %d1;");
        assert!(watched(&wait).is_empty());
        let early = wait.replace("aligned 0", "aligned 1");
        assert_eq!(watched(&early), [4]);
    }

    #[test]
    fn a_wait_in_one_arm_is_not_enough() {
        let arms = format!(
            "{FENCE}\nPRODUCT\n{COMMIT}\n@%p bra END;\nwgmma.wait_group.sync.aligned 0;\nEND: mov.f32 %d0, 0f00000000;"
        );
        assert_eq!(watched(&arms).len(), 1);
    }

    #[test]
    fn what_is_touched_between_fence_and_product_is_watched_everywhere() {
        let late = format!("mov.f32 %d0, 0f00000000;\n{FENCE}\nmov.f32 %d1, 0f00000000;\nPRODUCT");
        assert_eq!(watched(&late), [2]);
        let early = format!("mov.f32 %d0, 0f00000000;\nmov.f32 %d1, 0f00000000;\n{FENCE}\nPRODUCT");
        assert!(watched(&early).is_empty());
    }
}
