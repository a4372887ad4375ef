//! From decoded instructions to whole-warp kernels, for the forms that have one.

use super::{Action, Compute, Lanewise, control, movement};
use crate::machine::{Fixed, Layout, Place, Source, Step};
use crate::simd::{Code, Kernel, NO_MEETING, Operation, Permutation, Traffic, UNGUARDED, combine};
use happens_before::Space;
use ptx::RegisterId;

/// A kernel that does what a lanewise function does, and what else it needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    pub kernel: Kernel,
    pub extra: u32,
    /// The first two operands change places.
    pub swapped: bool,
}

impl Chosen {
    pub fn new(kernel: Kernel) -> Chosen {
        Chosen { kernel, extra: 0, swapped: false }
    }
}

/// Lowers the steps of a program; constants get places in its layout. `parameter_bytes`: the size of the parameters.
/// `each_access`: accesses to memory are left to the slow path, where lints see them.
pub fn lower(steps: &[Step], layout: &mut Layout, parameter_bytes: u64, each_access: bool) -> Code {
    let mut lowering = Lowering { layout, parameter_bytes, each_access, permutations: vec![], traffic: vec![] };
    let all = steps.iter().zip(0..);
    let operations = all.map(|(step, site)| lowering.step(step, site).unwrap_or(Operation::LEAVE)).collect();
    let Lowering { permutations, traffic, .. } = lowering;
    Code::new(operations, |at| steps[at].is_watched(), (permutations, traffic), layout)
}

struct Lowering<'a> {
    layout: &'a mut Layout,
    parameter_bytes: u64,
    each_access: bool,
    permutations: Vec<Permutation>,
    traffic: Vec<Traffic>,
}

impl Lowering<'_> {
    fn step(&mut self, step: &Step, site: u32) -> Option<Operation> {
        let guard = match step.guard {
            Some(guard) => self.predicate(Source::Register(guard.register))?.0 * 2 + u32::from(guard.negated),
            None => UNGUARDED,
        };
        let operation = match &step.action {
            Action::Nothing => Operation::new(Kernel::Pass),
            Action::Control(control::Jump::Branch { target, meeting }) => {
                let meeting = meeting.soon.unwrap_or(NO_MEETING);
                Operation { extra: *target, a: meeting, ..Operation::new(Kernel::Branch) }
            }
            Action::Compute(compute) => self.compute(compute)?,
            Action::Movement(transfer) => match transfer.plain() {
                Some(_) if self.each_access => return None,
                Some(plain) => self.memory(&plain, site)?,
                None => match transfer.parameter() {
                    Some(parameter) => self.parameter(parameter)?,
                    None => self.transfer(transfer)?,
                },
            },
            Action::Warp(exchange) => {
                let ([destination, in_range], source, permutation) = exchange.permutation()?;
                self.permutations.push(permutation);
                let (destination, a) = (self.word_destination(destination)?, self.word(source)?);
                let b = match in_range {
                    Some(register) => self.predicate(Source::Register(register))?.0 + 1,
                    None => 0,
                };
                let extra = self.permutations.len() as u32 - 1;
                Operation { destination, a, b, extra, ..Operation::new(Kernel::Shuffle) }
            }
            _ => return None,
        };
        Some(Operation { guard, ..operation })
    }

    fn compute(&mut self, compute: &Compute) -> Option<Operation> {
        if compute.complement.is_some() {
            return None;
        }
        let destination = compute.destination?;
        let place = self.layout.place(destination);
        let chosen = match compute.function {
            Lanewise::Integer(lane) => lane.kernel()?,
            Lanewise::Float(lane) => lane.kernel()?,
            Lanewise::Half(lane) => lane.kernel()?,
            Lanewise::Compare(lane) => lane.kernel(matches!(place, Place::Wide(_)))?,
            Lanewise::Convert(lane) => lane.kernel()?,
            Lanewise::Algebra(_) => return None,
            Lanewise::Copy => Chosen::new(match place {
                Place::Word(_) => Kernel::Copy,
                Place::Wide(_) => Kernel::WideCopy,
                Place::Predicate(_) => Kernel::PredicateCopy,
            }),
        };
        let [a, b, c] = compute.sources;
        let sources = if chosen.swapped { [b, a, c] } else { [a, b, c] };
        self.place(chosen, destination, sources)
    }

    /// Finds places for the operands, as the kernel takes them.
    fn place(&mut self, chosen: Chosen, destination: RegisterId, [a, b, c]: [Source; 3]) -> Option<Operation> {
        let Chosen { kernel, extra, .. } = chosen;
        let place = self.layout.place(destination);
        let operation = Operation { extra, ..Operation::new(kernel) };
        Some(match (kernel, place) {
            (Kernel::Select, Place::Word(destination)) => {
                let (c, negated) = self.predicate(c)?;
                Operation { destination, a: self.word(a)?, b: self.word(b)?, c, extra: negated, ..operation }
            }
            (Kernel::WideSelect, Place::Wide(destination)) => {
                let (c, negated) = self.predicate(c)?;
                Operation { destination, a: self.wide(a)?, b: self.wide(b)?, c, extra: negated, ..operation }
            }
            (one, Place::Predicate(destination)) if one >= Kernel::PredicateCopy => {
                let (one, two) = (self.predicate(a)?, self.predicate(b).unwrap_or_default());
                let plain = one.1 == 0 && two.1 == 0;
                plain.then_some(Operation { destination, a: one.0, b: two.0, ..operation })?
            }
            (one, Place::Predicate(destination)) if one >= Kernel::Equal => {
                let combined = extra & combine::OPERATION != 0;
                let (c, negated) = if combined { self.predicate(c)? } else { (destination, 0) };
                let (a, b) = if one >= Kernel::WideEqual {
                    (self.wide(a)?, self.wide(b)?)
                } else {
                    (self.word(a)?, self.word(b)?)
                };
                Operation { destination, a, b, c, extra: extra | (negated * combine::NOT), ..operation }
            }
            (one, Place::Wide(destination)) if one >= Kernel::WideCopy => {
                let [a, b, c] = self.wide_operands(one, [a, b, c])?;
                Operation { destination, a, b, c, ..operation }
            }
            (one, Place::Word(destination)) if one < Kernel::WideCopy => {
                Operation { destination, a: self.word(a)?, b: self.word(b)?, c: self.word(c)?, ..operation }
            }
            _ => return None,
        })
    }

    /// Operands of kernels with a wide result: some take words.
    fn wide_operands(&mut self, kernel: Kernel, [a, b, c]: [Source; 3]) -> Option<[u32; 3]> {
        Some(match kernel {
            Kernel::WidenSigned | Kernel::WidenUnsigned | Kernel::WideJoin => [self.word(a)?, self.word(b)?, 0],
            Kernel::MultiplyWideSigned | Kernel::MultiplyWideUnsigned => [self.word(a)?, self.word(b)?, 0],
            Kernel::MultiplyAddWideSigned | Kernel::MultiplyAddWideUnsigned => {
                [self.word(a)?, self.word(b)?, self.wide(c)?]
            }
            Kernel::WideShiftLeft | Kernel::WideShiftRightSigned | Kernel::WideShiftRightUnsigned => {
                [self.wide(a)?, self.word(b)?, 0]
            }
            _ => [self.wide(a)?, self.wide(b)?, self.wide(c)?],
        })
    }

    fn transfer(&mut self, transfer: &movement::Transfer) -> Option<Operation> {
        let (kernel, destination, sources) = transfer.kernel()?;
        if matches!(kernel, Kernel::WideSplit | Kernel::SplitHalves) {
            let (low, high) = destination;
            let (destination, extra) = (self.word_destination(low)?, self.word_destination(high)?);
            let a = if kernel == Kernel::WideSplit { self.wide(sources[0]) } else { self.word(sources[0]) }?;
            return Some(Operation { destination, a, extra, ..Operation::new(kernel) });
        }
        self.place(Chosen::new(kernel), destination.0?, sources)
    }

    /// A load of bytes that no launch changes.
    fn parameter(&mut self, (destination, offset, bytes): (RegisterId, u64, u32)) -> Option<Operation> {
        let inside = offset.checked_add(bytes.into()).is_some_and(|end| end <= self.parameter_bytes);
        let part = |offset, bytes| Fixed::Parameter { offset, bytes };
        let (kernel, destination, a) = match (self.layout.place(destination), bytes) {
            _ if !inside => return None,
            (Place::Word(place), 1 | 2 | 4) => (Kernel::Copy, place, self.layout.fixed(&[part(offset, bytes)])),
            (Place::Wide(place), 8) => {
                (Kernel::WideCopy, place, self.layout.fixed(&[part(offset, 4), part(offset + 4, 4)]))
            }
            _ => return None,
        };
        Some(Operation { destination, a, ..Operation::new(kernel) })
    }

    fn memory(&mut self, plain: &movement::Plain, site: u32) -> Option<Operation> {
        let mut words = vec![];
        for value in &plain.values {
            match (*value, plain.element) {
                (Source::Register(register), _) => words.extend(self.parts(register, plain.element)?),
                (Source::Constant(value), 8) => {
                    let low = self.layout.wide_constant(value);
                    words.extend([low, low + 1]);
                }
                (Source::Constant(value), _) => words.push(self.layout.constant(value as u32)),
                _ => return None,
            }
        }
        let a = match plain.space {
            Space::Shared => self.narrow(plain.base)?,
            Space::Global => self.wide(plain.base)?,
        };
        words.resize(4, words.first().copied()?);
        let words = words.try_into().ok()?;
        self.traffic.push(Traffic { space: plain.space, bytes: plain.bytes, words, offset: plain.offset, site });
        let extra = self.traffic.len() as u32 - 1;
        Some(Operation { a, extra, ..Operation::new(if plain.loads { Kernel::Load } else { Kernel::Store }) })
    }

    /// The words of a register that holds one element.
    fn parts(&self, register: RegisterId, element: u32) -> Option<Vec<u32>> {
        match (self.layout.place(register), element) {
            (Place::Word(place), 1 | 2 | 4) => Some(vec![place]),
            (Place::Wide(place), 8) => Some(vec![place, place + 1]),
            _ => None,
        }
    }

    /// A source of 32 bits.
    fn narrow(&mut self, source: Source) -> Option<u32> {
        match source {
            Source::Register(register) => self.word_destination(Some(register)),
            other => self.word(other),
        }
    }

    fn word_destination(&self, register: Option<RegisterId>) -> Option<u32> {
        match self.layout.place(register?) {
            Place::Word(place) => Some(place),
            _ => None,
        }
    }

    /// The low 32 bits of a source.
    fn word(&mut self, source: Source) -> Option<u32> {
        match source {
            Source::Register(register) => match self.layout.place(register) {
                Place::Word(place) | Place::Wide(place) => Some(place),
                Place::Predicate(_) => None,
            },
            Source::Constant(value) => Some(self.layout.constant(value as u32)),
            // Time is not fixed.
            Source::Special(name) if !name.starts_with("%clock") && !name.starts_with("%globaltimer") => {
                Some(self.layout.fixed(&[Fixed::Special(name)]))
            }
            _ => None,
        }
    }

    fn wide(&mut self, source: Source) -> Option<u32> {
        match source {
            Source::Register(register) => match self.layout.place(register) {
                Place::Wide(place) => Some(place),
                _ => None,
            },
            Source::Constant(value) => Some(self.layout.wide_constant(value)),
            _ => None,
        }
    }

    /// A predicate, and one if it is negated.
    fn predicate(&self, source: Source) -> Option<(u32, u32)> {
        let (register, negated) = match source {
            Source::Register(register) => (register, 0),
            Source::Not(register) => (register, 1),
            _ => return None,
        };
        match self.layout.place(register) {
            Place::Predicate(place) => Some((place, negated)),
            _ => None,
        }
    }
}
