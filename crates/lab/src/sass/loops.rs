//! Loops, found in the graph of control: a branch back closes one only if nobody gets to it except through its target.
//!
//! That matters: ptxas puts the slow path of a wait behind the last instruction, from where it branches back into the
//! middle of the kernel, and between the two lies nearly everything.

use std::collections::BTreeSet;

use super::class::{Class, Counts};
use super::listing::Function;

/// A loop, with those inside of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// The label at its head.
    pub label: String,
    /// Indices of its instructions, in order; the first is its head, unless ptxas moved parts before it.
    pub body: Vec<usize>,
    /// 1 for one that is in no other.
    pub depth: usize,
    pub counts: Counts,
}

impl Loop {
    /// It does nothing but ask whether something is complete.
    pub fn only_waits(&self) -> bool {
        self.counts.of(Class::Wait) > 0
            && self.counts.of(Class::Wait) + self.counts.of(Class::Branch) == self.counts.all()
    }
}

/// Every loop, in the order of their heads.
pub fn loops(function: &Function) -> Vec<Loop> {
    let graph = Graph::new(function);
    let dominators = graph.dominators();
    let mut bodies: Vec<(usize, BTreeSet<usize>)> = Vec::new();
    for (block, successors) in graph.successors.iter().enumerate() {
        for &head in successors.iter().filter(|head| dominators.dominates(**head, block)) {
            let body = graph.body(head, block);
            match bodies.iter_mut().find(|(known, _)| *known == head) {
                Some((_, known)) => known.extend(body),
                None => bodies.push((head, body)),
            }
        }
    }
    bodies.sort();
    let depth = |head: &usize| bodies.iter().filter(|(_, body)| body.contains(head)).count();
    let all = bodies.iter().map(|(head, body)| graph.describe(function, *head, body, depth(head)));
    // The endless branch behind the last exit.
    all.filter(|one| one.body.len() > 1).collect()
}

/// The loop that computes: it has most tensor-core instructions and, of those with equally many, least of all others.
/// Where no loop has any, the longest.
pub fn main_loop(loops: &[Loop]) -> Option<usize> {
    let tensor = |one: &Loop| one.counts.of(Class::Tensor);
    let most = loops.iter().map(tensor).max()?;
    let candidates = (0..loops.len()).filter(|index| tensor(&loops[*index]) == most);
    if most == 0 {
        candidates.max_by_key(|i| loops[*i].body.len())
    } else {
        candidates.min_by_key(|i| loops[*i].body.len())
    }
}

/// Blocks of instructions that run one after the other.
struct Graph {
    /// Where each begins, and the end of all.
    starts: Vec<usize>,
    successors: Vec<Vec<usize>>,
    predecessors: Vec<Vec<usize>>,
}

impl Graph {
    fn new(function: &Function) -> Graph {
        let code = &function.instructions;
        let mut starts: BTreeSet<usize> = [0, code.len()].into();
        starts.extend(function.labels.iter().map(|(_, place)| *place));
        let ends = |index: &usize| !code[*index].targets.is_empty() || stops(function, *index);
        starts.extend((0..code.len()).filter(ends).map(|index| index + 1));
        let starts: Vec<usize> = starts.into_iter().collect();
        let mut graph = Graph { successors: vec![], predecessors: vec![vec![]; starts.len() - 1], starts };
        for block in 0..graph.starts.len() - 1 {
            let last = graph.starts[block + 1] - 1;
            let targets = code[last].targets.iter().filter_map(|label| graph.block(function.place(label)?));
            let next = (!stops(function, last)).then_some(block + 1).filter(|next| next + 1 < graph.starts.len());
            let successors: BTreeSet<usize> = targets.chain(next).collect();
            successors.iter().for_each(|successor| graph.predecessors[*successor].push(block));
            graph.successors.push(successors.into_iter().collect());
        }
        graph
    }

    /// The block that begins at an instruction.
    fn block(&self, start: usize) -> Option<usize> {
        self.starts.binary_search(&start).ok().filter(|block| block + 1 < self.starts.len())
    }

    /// Everything from which `last` is reached without passing `head`, which dominates it.
    fn body(&self, head: usize, last: usize) -> BTreeSet<usize> {
        let (mut body, mut open) = (BTreeSet::from([head]), vec![last]);
        while let Some(block) = open.pop() {
            if body.insert(block) {
                open.extend(&self.predecessors[block]);
            }
        }
        body
    }

    fn describe(&self, function: &Function, head: usize, blocks: &BTreeSet<usize>, depth: usize) -> Loop {
        let body: Vec<usize> = blocks.iter().flat_map(|block| self.starts[*block]..self.starts[block + 1]).collect();
        let label = function.labels.iter().find(|(_, place)| *place == self.starts[head]);
        let counts = body.iter().map(|index| function.instructions[*index].class).collect();
        Loop { label: label.map(|(label, _)| label.clone()).unwrap_or_default(), body, depth, counts }
    }

    /// The blocks in reverse postorder; what the entry does not reach (functions that are called) is entered by itself.
    fn order(&self) -> (Vec<usize>, Vec<usize>) {
        let (mut seen, mut postorder, mut roots) = (vec![false; self.successors.len()], vec![], vec![]);
        for root in 0..self.successors.len() {
            if !seen[root] {
                roots.push(root);
                self.visit(root, &mut seen, &mut postorder);
            }
        }
        postorder.reverse();
        (postorder, roots)
    }

    fn visit(&self, root: usize, seen: &mut [bool], postorder: &mut Vec<usize>) {
        let mut open = vec![(root, 0)];
        seen[root] = true;
        while let Some((block, next)) = open.pop() {
            match self.successors[block].get(next) {
                None => postorder.push(block),
                Some(&successor) => {
                    open.push((block, next + 1));
                    if !std::mem::replace(&mut seen[successor], true) {
                        open.push((successor, 0));
                    }
                }
            }
        }
    }

    /// Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm".
    fn dominators(&self) -> Dominators {
        let (order, roots) = self.order();
        let root = self.successors.len();
        let mut rank = vec![0; root + 1];
        order.iter().enumerate().for_each(|(place, block)| rank[*block] = place + 1);
        let mut above: Vec<Option<usize>> = vec![None; root + 1];
        above[root] = Some(root);
        loop {
            let before = above.clone();
            for block in &order {
                let entered = roots.contains(block).then_some(root);
                let known = self.predecessors[*block].iter().copied().filter(|one| above[*one].is_some());
                above[*block] = entered.into_iter().chain(known).reduce(|left, right| meet(&above, &rank, left, right));
            }
            if above == before {
                return Dominators { above };
            }
        }
    }
}

/// The nearest block that dominates both.
fn meet(above: &[Option<usize>], rank: &[usize], mut left: usize, mut right: usize) -> usize {
    while left != right {
        let lower = if rank[left] > rank[right] { &mut left } else { &mut right };
        *lower = above[*lower].unwrap_or(above.len() - 1);
    }
    left
}

/// The nearest dominator of each block; the last is the root of all.
struct Dominators {
    above: Vec<Option<usize>>,
}

impl Dominators {
    fn dominates(&self, head: usize, block: usize) -> bool {
        let mut at = block;
        loop {
            match self.above[at] {
                _ if at == head => return true,
                Some(above) if above != at => at = above,
                _ => return false,
            }
        }
    }
}

/// Nothing runs after it but what it names.
fn stops(function: &Function, index: usize) -> bool {
    let one = &function.instructions[index];
    !one.conditional && ["BRA", "BRX", "JMP", "JMX", "EXIT", "RET"].contains(&super::stem(&one.opcode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sass::Listing;

    fn all(text: &str) -> Vec<(String, usize, usize)> {
        let listing = Listing::read(text).unwrap();
        loops(&listing.functions[0]).iter().map(|one| (one.label.clone(), one.body.len(), one.depth)).collect()
    }

    /// A loop with a wait whose slow path stands behind the exit.
    const WAITS: &str = "
.outer:
    /*0000*/ S2R R0, SR_TID.X ;
.inner:
    /*0010*/ SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R4 ;
    /*0020*/ @!P0 BRA `(.slow) ;
.go_on:
    /*0030*/ HGMMA.64x64x16.F32 R24, gdesc[UR4], R24 ;
    /*0040*/ @P1 BRA `(.inner) ;
    /*0050*/ @P2 BRA `(.outer) ;
    /*0060*/ EXIT ;
.slow:
    /*0070*/ SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R4 ;
    /*0080*/ @!P0 BRA `(.slow) ;
    /*0090*/ BRA `(.go_on) ;
.end:
    /*00a0*/ BRA `(.end) ;
    /*00b0*/ NOP ;";

    #[test]
    fn a_slow_path_that_comes_back_is_no_loop() {
        let expected = [(".outer".into(), 9, 1), (".inner".into(), 7, 2), (".slow".into(), 2, 3)];
        assert_eq!(all(WAITS), expected);
    }

    #[test]
    fn the_main_loop_is_the_innermost_that_has_the_products() {
        let listing = Listing::read(WAITS).unwrap();
        let loops = loops(&listing.functions[0]);
        assert_eq!(main_loop(&loops), Some(1));
        assert_eq!((loops[1].counts.of(Class::Tensor), loops[1].counts.of(Class::Wait)), (1, 2));
        assert_eq!(loops.iter().map(Loop::only_waits).collect::<Vec<_>>(), [false, false, true]);
        let without = Listing::read(&WAITS.replace("HGMMA", "FFMA")).unwrap();
        assert_eq!(main_loop(&super::loops(&without.functions[0])), Some(0));
        assert_eq!(main_loop(&[]), None);
    }

    #[test]
    fn two_branches_to_one_head_are_one_loop() {
        let text = ".a:\n/*0000*/ NOP ;\n/*0010*/ @P0 BRA `(.a) ;\n/*0020*/ @P1 BRA `(.a) ;\n/*0030*/ EXIT ;";
        assert_eq!(all(text), [(".a".into(), 3, 1)]);
    }

    #[test]
    fn a_loop_of_a_function_that_is_called_is_found() {
        let text = "/*0000*/ CALL.REL.NOINC `($f) ;\n/*0010*/ EXIT ;\n$f:\n/*0020*/ NOP ;\n/*0030*/ @P0 BRA `($f) ;\n\
                    /*0040*/ RET.REL.NODEC R2 `(k) ;";
        assert_eq!(all(text), [("$f".into(), 2, 1)]);
    }
}
