//! Calls: what they hand over, and the functions that the driver brings along.

use super::{At, Next};
use crate::checks;
use crate::machine::{CallSite, Cluster, Decoder, Slot, Source, Why, lanes};
use crate::memory::{STACK_BYTES, function_at};
use ptx::{Operand, Type};
use std::sync::Arc;

/// Lanes go into a function, each with a frame of its own.
pub fn enter(cluster: &mut Cluster, at: At, site: &Arc<CallSite>) -> Next {
    let frames = cluster.warps[at.warp].frames;
    for lane in lanes(at.mask) {
        let start = frames[lane] + site.caller_frame;
        if start + site.callee_frame.max(1) > STACK_BYTES || cluster.warps[at.warp].depth(at.fragment) > MAX_DEPTH {
            let message = format!("the stack of a thread, {STACK_BYTES} bytes or {MAX_DEPTH} calls, is used up");
            return checks::trap::stop(cluster, At { mask: 1 << lane, ..at }, message, "end the recursion earlier");
        }
        cluster.warps[at.warp].local[lane].open(start, site.callee_frame);
        for passed in &site.arguments {
            for byte in (0..passed.bytes).step_by(8) {
                let value = cluster.take(at.warp, lane, passed.slot, byte);
                let count = (passed.bytes - byte).min(8) as usize;
                let place = (start + passed.offset + byte) as usize;
                cluster.warps[at.warp].local[lane].bytes.write(place, count, value);
            }
        }
    }
    cluster.warps[at.warp].call(at.fragment, at.mask, site);
    Next::Done
}

/// Calls that a thread may be inside of, even if their frames are empty.
const MAX_DEPTH: usize = 4096;

/// The lanes that call the function of the first go; the others come to this place again.
pub fn enter_by_pointer(cluster: &mut Cluster, at: At, pointer: Source, sites: &[(usize, Arc<CallSite>)]) -> Next {
    let pointers = cluster.read(at.warp, pointer);
    let first = pointers[at.mask.trailing_zeros() as usize];
    let Some((_, site)) = sites.iter().find(|(callee, _)| Some(*callee) == function_at(first)) else {
        let message = format!("a call of {first:#x}, where no function is");
        return checks::trap::stop(cluster, at, message, "pass the address of a function");
    };
    let same = lanes(at.mask).filter(|lane| pointers[*lane] == first).fold(0, |mask, lane| mask | 1 << lane);
    if same == at.mask {
        return enter(cluster, at, site);
    }
    let warp = &mut cluster.warps[at.warp];
    let here = warp.fragments[at.fragment].next;
    warp.branch(at.fragment, same, here, Some(site.back));
    warp.fragments[at.fragment].next = here;
    Next::Done
}

/// Lanes return from the innermost function.
pub fn leave(cluster: &mut Cluster, at: At) -> Next {
    let frames = cluster.warps[at.warp].frames;
    let Some(site) = cluster.warps[at.warp].give_back(at.fragment, at.mask) else { return Next::Done };
    for lane in lanes(at.mask) {
        for passed in &site.results {
            for byte in (0..passed.bytes).step_by(8) {
                let count = (passed.bytes - byte).min(8) as usize;
                let place = (frames[lane] + passed.offset + byte) as usize;
                let value = cluster.warps[at.warp].local[lane].bytes.read(place, count);
                cluster.hand(at.warp, lane, passed.slot, byte, count, value);
            }
        }
    }
    Next::Done
}

impl Cluster<'_, '_> {
    /// Up to eight bytes of an argument, from `skip` on.
    fn take(&self, warp: usize, lane: usize, slot: Slot, skip: u64) -> u64 {
        match slot {
            Slot::Memory(offset) => {
                let local = &self.warps[warp].local[lane].bytes;
                let start = (self.warps[warp].frames[lane] + offset + skip) as usize;
                local.read(start, local.len().saturating_sub(start).min(8))
            }
            Slot::Register(register) => self.warps[warp].register(register)[lane],
            Slot::Value(source) => self.read(warp, source)[lane],
            Slot::Nowhere => 0,
        }
    }

    /// Up to eight bytes of a result, from `skip` on.
    fn hand(&mut self, warp: usize, lane: usize, slot: Slot, skip: u64, bytes: usize, value: u64) {
        match slot {
            Slot::Memory(offset) => {
                let start = (self.warps[warp].frames[lane] + offset + skip) as usize;
                self.warps[warp].local[lane].bytes.write(start, bytes, value);
            }
            Slot::Register(register) => self.warps[warp].write(Some(register), 1 << lane, &[value; 32]),
            Slot::Value(_) | Slot::Nowhere => {}
        }
    }
}

/// Functions without a body that CUDA programs may call. CUDA C++ Programming Guide, "Formatted Output", "Assertion".
pub enum Driver {
    /// `vprintf` prints nothing here.
    Print { result: Slot },
    /// `__assertfail(message, file, line, function, size of a character)`
    Assert { message: Slot, file: Slot, line: Slot },
}

impl Driver {
    pub fn decode(name: &str, results: &Operand, arguments: &Operand, decoder: &Decoder) -> Result<Driver, Why> {
        let slots = |operand: &Operand| match operand {
            Operand::Arguments(all) => all.iter().map(|one| decoder.slot(one, Type::U64)).collect(),
            _ => Ok(vec![]),
        };
        let (results, arguments): (Vec<Slot>, Vec<Slot>) = (slots(results)?, slots(arguments)?);
        match (name, &results[..], &arguments[..]) {
            ("vprintf", [result], _) => Ok(Driver::Print { result: *result }),
            ("__assertfail", _, [message, file, line, ..]) => {
                Ok(Driver::Assert { message: *message, file: *file, line: *line })
            }
            _ => Err(format!("`{name}` has no body here")),
        }
    }

    pub fn execute(&self, cluster: &mut Cluster, at: At) -> Next {
        match self {
            Driver::Print { result } => {
                lanes(at.mask).for_each(|lane| cluster.hand(at.warp, lane, *result, 0, 4, 0));
                Next::Following
            }
            Driver::Assert { message, file, line } => {
                let lane = at.mask.trailing_zeros() as usize;
                let [message, file] = [message, file].map(|slot| cluster.text(cluster.take(at.warp, lane, *slot, 0)));
                let line = cluster.take(at.warp, lane, *line, 0) as u32;
                let message = format!("the assertion `{message}` fails at {file}:{line}");
                checks::trap::stop(cluster, at, message, "find out why the assertion does not hold")
            }
        }
    }
}

impl Cluster<'_, '_> {
    /// The text in global memory at an address, up to its zero.
    fn text(&self, address: u64) -> String {
        let byte = |at: u64| {
            let (allocation, offset) = self.global.find(at, 1).ok()?;
            Some(self.global.pages(allocation).read(offset, 1) as u8).filter(|byte| *byte != 0)
        };
        let bytes: Vec<u8> = (address..address.saturating_add(MAX_TEXT)).map_while(byte).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Longer texts are cut.
const MAX_TEXT: u64 = 1024;
