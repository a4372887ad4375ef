//! Control flow.

use super::{At, Next, call};
use crate::checks;
use crate::machine::{CallSite, Cluster, Decoder, Source, Why, defined, lanes};
use ptx::forms::Control;
use ptx::{Instruction, Operand, Symbol, Type};
use std::sync::Arc;

pub enum Jump {
    Branch {
        target: u32,
        meeting: Meeting,
    },
    /// `brx.idx`.
    Table {
        index: Source,
        targets: Vec<u32>,
        meeting: Meeting,
    },
    Call(Arc<CallSite>),
    /// Through a pointer: each function that it may mean, with its index in the module.
    CallIndirect {
        pointer: Source,
        sites: Vec<(usize, Arc<CallSite>)>,
    },
    /// A function that the driver brings along.
    CallDriver(call::Driver),
    /// From the innermost function, or from the kernel.
    Return,
    Exit,
    Trap,
}

/// Where lanes that a branch parts meet again: as soon as hardware usually does, and as late as it may.
#[derive(Clone, Copy)]
pub struct Meeting {
    pub soon: Option<u32>,
    late: Option<u32>,
}

impl Meeting {
    fn of(self, cluster: &Cluster) -> Option<u32> {
        if cluster.adversary.meets_late() { self.late } else { self.soon }
    }
}

pub fn decode(op: Control, at: usize, instruction: &Instruction, decoder: &Decoder) -> Result<Jump, Why> {
    let targets = || decoder.flow.targets(at).iter().map(|target| decoder.step_at(*target));
    let place = |place: Option<u32>| place.map(|place| decoder.step_at(place));
    let meeting =
        Meeting { soon: place(decoder.flow.meeting_point(at)), late: place(decoder.flow.late_meeting_point(at)) };
    Ok(match op {
        Control::Branch => Jump::Branch { target: targets().next().ok_or("a branch without a label")?, meeting },
        Control::BranchTable => {
            let index = decoder.source(&instruction.operands[0], Type::U32)?;
            Jump::Table { index, targets: targets().collect(), meeting }
        }
        Control::Call => decode_call(at, instruction, decoder)?,
        Control::CallIndirect => {
            let [results, pointer, arguments, ..] = &instruction.operands[..] else { return Err(String::new()) };
            let site = |callee| Ok((callee, Arc::new(decoder.call_site(at, callee, results, arguments)?)));
            let sites = decoder.callable().map(site).collect::<Result<_, Why>>()?;
            Jump::CallIndirect { pointer: decoder.source(pointer, Type::U64)?, sites }
        }
        Control::Return => Jump::Return,
        Control::Exit => Jump::Exit,
        Control::Trap => Jump::Trap,
        Control::Breakpoint => return Err(String::new()),
    })
}

fn decode_call(at: usize, instruction: &Instruction, decoder: &Decoder) -> Result<Jump, Why> {
    let [results, Operand::Symbol(Symbol::Function(id)), arguments] = &instruction.operands[..] else {
        return Err("a call of this kind".into());
    };
    match defined(decoder.module, *id) {
        Some(callee) => Ok(Jump::Call(Arc::new(decoder.call_site(at, callee, results, arguments)?))),
        None => call::Driver::decode(&decoder.module[*id].name, results, arguments, decoder).map(Jump::CallDriver),
    }
}

pub fn execute(cluster: &mut Cluster, at: At, jump: &Jump) -> Next {
    match jump {
        Jump::Branch { target, meeting } => {
            let meeting = meeting.of(cluster);
            let parts = at.mask != 0 && at.mask != cluster.warps[at.warp].fragments[at.fragment].mask;
            cluster.warps[at.warp].branch(at.fragment, at.mask, *target, meeting);
            if parts { Next::Done } else { Next::Elsewhere }
        }
        _ if at.mask == 0 => Next::Following,
        Jump::Table { index, targets, meeting } => jump_by_table(cluster, at, *index, targets, meeting.of(cluster)),
        Jump::Call(site) => call::enter(cluster, at, site),
        Jump::CallIndirect { pointer, sites } => call::enter_by_pointer(cluster, at, *pointer, sites),
        Jump::CallDriver(function) => function.execute(cluster, at),
        Jump::Return if !cluster.warps[at.warp].fragments[at.fragment].calls.is_empty() => call::leave(cluster, at),
        Jump::Return | Jump::Exit => {
            // The others of the fragment go on first: `exit` removes fragments that become empty.
            cluster.warps[at.warp].fragments[at.fragment].next += 1;
            cluster.exit(at.warp, at.mask);
            Next::Done
        }
        Jump::Trap => {
            checks::trap::report(cluster, at);
            cluster.stopped = true;
            Next::Done
        }
    }
}

/// Lanes with the same index stay together.
fn jump_by_table(cluster: &mut Cluster, at: At, index: Source, targets: &[u32], meeting: Option<u32>) -> Next {
    let indices = cluster.read(at.warp, index);
    let mut ways: Vec<(u32, u32)> = vec![];
    let fragment = &cluster.warps[at.warp].fragments[at.fragment];
    let others = fragment.mask & !at.mask;
    if others != 0 {
        ways.push((others, fragment.next + 1));
    }
    for lane in lanes(at.mask) {
        let Some(target) = targets.get(indices[lane] as u32 as usize) else {
            let message = format!("an index of {} chooses from {} targets", indices[lane] as u32, targets.len());
            return checks::trap::stop(
                cluster,
                At { mask: 1 << lane, ..at },
                message,
                "keep the index below the table",
            );
        };
        match ways.iter_mut().find(|(mask, way)| way == target && mask & others == 0) {
            Some((mask, _)) => *mask |= 1 << lane,
            None => ways.push((1 << lane, *target)),
        }
    }
    cluster.warps[at.warp].scatter(at.fragment, &ways, meeting);
    Next::Done
}
