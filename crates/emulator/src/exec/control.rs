//! Control flow.

use super::{At, Next};
use crate::checks;
use crate::machine::{Block, Decoder, Why};
use ptx::forms::Control;

pub enum Jump {
    Branch { target: u32, meeting: Option<u32> },
    Exit,
    Trap,
}

pub fn decode(op: Control, at: usize, decoder: &Decoder) -> Result<Jump, Why> {
    Ok(match op {
        Control::Branch => {
            let target = decoder.flow.target(at).ok_or("a branch without a label")?;
            Jump::Branch { target, meeting: decoder.flow.meeting_point(at) }
        }
        Control::Return | Control::Exit => Jump::Exit,
        Control::Trap => Jump::Trap,
        Control::BranchTable | Control::Call | Control::CallIndirect | Control::Breakpoint => return Err(String::new()),
    })
}

pub fn execute(block: &mut Block, at: At, jump: &Jump) -> Next {
    match jump {
        Jump::Branch { target, meeting } => {
            block.warps[at.warp].branch(at.fragment, at.mask, *target, *meeting);
            Next::Done
        }
        Jump::Exit => {
            // The others of the fragment go on first: `exit` removes fragments that become empty.
            block.warps[at.warp].fragments[at.fragment].next += 1;
            block.exit(at.warp, at.mask);
            Next::Done
        }
        Jump::Trap if at.mask == 0 => Next::Following,
        Jump::Trap => {
            checks::trap::report(block, at);
            block.stopped = true;
            Next::Done
        }
    }
}
