//! Random event sequences. Addresses are few, so that conflicts abound; synchronisation is frequent, and most sequences
//! take back most of their faulty accesses, so that long ordered runs arise.

mod program;

use super::{Before, Duel, Event};
use crate::actor::Gap;
use crate::definition::lanes_of;
use crate::{Lanes, Site};
use program::Program;

pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..5).for_each(|_| {
            dice.roll(2);
        });
        dice
    }

    pub fn roll(&mut self, sides: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) as u32) % sides
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len() as u32) as usize]
    }
}

#[derive(Default)]
struct Tally {
    events: usize,
    /// By what lies between: a fence, a scope, everything.
    faulty: [usize; 3],
    /// Of earlier grids.
    early: usize,
    clean: usize,
}

/// A grid of random events that may still run.
fn before(seed: u64) -> Before {
    let mut program = Program::new(Dice::new(seed), false);
    let mut duel = Duel::new(&program.live, program.warps_per_block);
    for site in 0..24 {
        let Some(event) = program.event() else { break };
        duel.step(&event, Site(site)).expect("they agree");
    }
    Before::new(&duel.detector.summary(), &duel.oracle, seed.is_multiple_of(2))
}

fn sequence(seed: u64, length: usize, tally: &mut Tally) {
    let mut program = Program::new(Dice::new(seed), seed % 8 == 5);
    let mut duel = Duel::new(&program.live, program.warps_per_block);
    let grids: Vec<Before> = (0..seed / 2 % 3).map(|grid| before(seed * 3 + grid)).collect();
    Before::begin_behind(&grids, std::slice::from_mut(&mut duel.detector), &mut duel.oracle);
    let disciplined = !seed.is_multiple_of(4);
    let (mut log, mut faulty, mut early, mut tries) = (Vec::new(), [0; 3], 0, 0);
    while log.len() < length && tries < 8 * length {
        tries += 1;
        let Some(event) = program.event() else { break };
        let memory = event.accessing().is_some();
        let saved = (disciplined && memory && program.dice.roll(16) > 0).then(|| duel.clone());
        let site = Site(log.len() as u32);
        log.push(event);
        match (duel.step(&log[site.0 as usize], site), saved) {
            (Ok(bytes), Some(saved)) if !bytes.is_empty() => {
                duel = saved;
                log.pop();
            }
            (Ok(bytes), _) => bytes.iter().for_each(|((grid, ..), gap)| match grid {
                Some(_) => early += 1,
                None => faulty[*gap as usize] += 1,
            }),
            (Err(difference), _) => {
                log.iter().enumerate().for_each(|(site, event)| eprintln!("{site:3} {}", show(event)));
                panic!("seed {seed}, step {}: {difference}", site.0);
            }
        }
    }
    tally.events += log.len();
    tally.faulty.iter_mut().zip(faulty).for_each(|(all, here)| *all += here);
    tally.early += early;
    tally.clean += (faulty == [0; 3] && early == 0) as usize;
}

fn show(event: &Event) -> String {
    let of = |at: &Lanes, addresses: &[u64; 32]| {
        let addresses: Vec<u64> = lanes_of(at.mask).iter().map(|lane| addresses[*lane as usize]).collect();
        format!("warp {} {:#x} {addresses:x?}", at.warp, at.mask)
    };
    match event {
        Event::Access { at, kind, semantics, space, addresses, bytes } => {
            format!("{kind:?} {semantics:?} {space:?} {bytes} {}", of(at, addresses))
        }
        Event::Copy { at, from, to, bytes, .. } => format!("Copy {bytes} {} from {}", of(at, to), of(at, from)),
        event => format!("{event:x?}"),
    }
}

/// `HAPPENS_BEFORE_SEQUENCES` and `HAPPENS_BEFORE_START` choose how many seeds, and which.
#[test]
fn detector_agrees_with_the_definition() {
    let number = |name: &str, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (count, start) = (number("HAPPENS_BEFORE_SEQUENCES", 4000), number("HAPPENS_BEFORE_START", 1));
    let mut tally = Tally::default();
    (start..start + count).for_each(|seed| sequence(seed, 24 + (seed % 5) as usize * 12, &mut tally));
    let Tally { events, faulty, early, clean } = tally;
    println!(
        "{count} sequences, {events} events, {clean} sequences without fault, {faulty:?} faulty bytes, {early} of earlier grids"
    );
    for gap in [Gap::Fence, Gap::Reach, Gap::Order] {
        assert!(
            clean > 0 && early > 0 && faulty[gap as usize] > 0,
            "the generator must make faulty bytes ({gap:?}) and clean runs"
        );
    }
}
