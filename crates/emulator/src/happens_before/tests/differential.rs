//! Random event sequences. Addresses are few, so that conflicts abound; synchronisation is frequent, and most sequences
//! take back most of their faulty accesses, so that long ordered runs arise.

use super::{ALL, Duel, Event, lanes_of};
use crate::happens_before::{Kind, Lanes, Scope, Semantics, Site, Space};

/// Where flags lie.
const FLAG: u64 = 2048;

struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..5).for_each(|_| {
            dice.roll(2);
        });
        dice
    }

    fn roll(&mut self, sides: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) as u32) % sides
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len() as u32) as usize]
    }
}

#[derive(Clone, Default)]
struct Barrier {
    arrivals: Vec<Lanes>,
    waiters: Vec<Lanes>,
}

/// A CTA that does what it may, as an emulator would run it.
struct Program {
    dice: Dice,
    live: Vec<u32>,
    /// Lanes that wait at a barrier.
    blocked: Vec<u32>,
    barriers: [Barrier; 3],
}

impl Program {
    fn new(mut dice: Dice) -> Program {
        let warps = dice.pick(&[1, 2, 2, 2, 3]);
        let live: Vec<u32> = (0..warps).map(|_| dice.pick(&[0xff, 0xff, 0xff, ALL, 0x0f, 0x01])).collect();
        Program { dice, blocked: vec![0; live.len()], live, barriers: Default::default() }
    }

    fn awake(&self) -> Vec<u32> {
        (0..self.live.len() as u32).filter(|warp| self.ready(*warp) != 0).collect()
    }

    fn ready(&self, warp: u32) -> u32 {
        self.live[warp as usize] & !self.blocked[warp as usize]
    }

    fn some(&mut self, warp: u32) -> Lanes {
        let mask = self.dice.pick(&[ALL, ALL, ALL, ALL, 0x0f, 0xf0, 0x01, 0x03, 0x82, 0x55]) & self.ready(warp);
        Lanes { warp, mask: if mask == 0 { self.ready(warp) } else { mask } }
    }

    fn addresses(&mut self, space: Space, size: u64) -> Box<[u64; 32]> {
        // Two bases per space, one of them just below a page's end.
        let base = match (space, self.dice.roll(6)) {
            (Space::Shared, 0) => 4096 - 48,
            (Space::Shared, _) => 0,
            (Space::Global, 0) => 0x7f00_0000_0000 + 4096 - 48,
            (Space::Global, _) => 0x7f00_0000_0000,
        };
        let shift = self.dice.pick(&[0, 0, 0, 16, 32, 4, 8, size]);
        let (pattern, twist) = (self.dice.roll(8), self.dice.roll(8) as u64);
        Box::new(std::array::from_fn(|lane| {
            let lane = lane as u64;
            let offset = match pattern {
                0 => 0,
                1 => lane * size * 2,
                2 => (lane ^ twist) * size,
                3 => lane / 4 * size,
                4 => lane / 4 * 32 + lane % 4 * size,
                _ => lane * size,
            };
            base + shift + offset
        }))
    }

    fn access(&mut self, at: Lanes) -> Event {
        let space = self.dice.pick(&[Space::Shared, Space::Shared, Space::Global]);
        let strong = self.dice.roll(4) == 0;
        let kinds = if strong {
            [Kind::Atomic, Kind::StrongRead, Kind::StrongWrite]
        } else {
            [Kind::Read, Kind::Read, Kind::Write]
        };
        let kind = self.dice.pick(&kinds);
        let Semantics { release, acquire, blind, scope } = self.semantics();
        // Loads do not release, stores do not acquire, and only `red` is blind.
        let semantics = Semantics {
            release: release && matches!(kind, Kind::Atomic | Kind::StrongWrite),
            acquire: acquire && matches!(kind, Kind::Atomic | Kind::StrongRead),
            blind: blind && kind == Kind::Atomic,
            scope,
        };
        if strong && self.dice.roll(3) > 0 {
            // A flag that many use: otherwise nobody would read what another wrote.
            let addresses = Box::new([FLAG; 32]);
            return Event::Access { at, kind, semantics, space: Space::Shared, addresses, bytes: 4 };
        }
        let bytes = self.dice.pick(&[1, 2, 4, 4, 4, 8, 16, 16]);
        Event::Access { at, kind, semantics, space, addresses: self.addresses(space, bytes as u64), bytes }
    }

    fn semantics(&mut self) -> Semantics {
        let [release, acquire, blind] = [2, 2, 6].map(|sides| self.dice.roll(sides) == 0);
        Semantics { release, acquire, blind, scope: self.dice.pick(&[Scope::Cta, Scope::Cluster]) }
    }

    fn copy(&mut self, at: Lanes) -> Event {
        let bytes = self.dice.pick(&[4, 8, 16, 16]);
        let fill = self.dice.pick(&[0, 0, 0, 3, 7]);
        let short = self.dice.pick(&[0, bytes / 2]);
        let from_bytes = std::array::from_fn(|lane| if fill >> (lane % 4) & 1 == 1 { short } else { bytes });
        let (from, to) = (self.addresses(Space::Global, bytes as u64), self.addresses(Space::Shared, bytes as u64));
        Event::Copy { at, from, from_bytes: Box::new(from_bytes), to, bytes }
    }

    fn arrive(&mut self, at: Lanes) -> Event {
        let id = self.dice.pick(&[0, 0, 0, 1, 2]);
        let at = if self.dice.roll(6) > 0 { Lanes { mask: self.ready(at.warp), ..at } } else { at };
        let barrier = &mut self.barriers[id as usize];
        barrier.arrivals.push(at);
        if id == 0 || self.dice.roll(3) > 0 {
            barrier.waiters.push(at);
            self.blocked[at.warp as usize] |= at.mask;
        }
        Event::Arrive { at, id }
    }

    fn next(&mut self, warp: u32) -> Event {
        let at = self.some(warp);
        match self.dice.roll(100) {
            0..45 => self.access(at),
            45..57 => self.copy(at),
            57..65 => Event::Commit(at),
            65..73 => Event::Wait(at, self.dice.pick(&[0, 0, 0, 1, 2])),
            73..75 => Event::WaitAll(at),
            75..84 => Event::WarpSync(if self.dice.roll(4) > 0 { Lanes { mask: self.ready(warp), ..at } } else { at }),
            84..94 => self.arrive(at),
            94..99 => Event::Fence(at, self.semantics()),
            _ => {
                self.live[warp as usize] &= !at.mask;
                Event::Exit(at)
            }
        }
    }

    /// A generation that is complete: barrier 0 wants every live lane, the others two arrivals. When nobody can go on,
    /// any generation with a waiter ends.
    fn complete(&mut self) -> Option<Event> {
        let stuck = self.awake().is_empty();
        let full = (0..3).find(|id| {
            let barrier = &self.barriers[*id];
            let everybody = || (0..self.live.len()).all(|warp| self.live[warp] & !arrived(barrier, warp as u32) == 0);
            let enough = if *id == 0 { everybody() } else { barrier.arrivals.len() >= 2 };
            !barrier.arrivals.is_empty() && (enough || stuck && !barrier.waiters.is_empty())
        })?;
        let Barrier { waiters, .. } = std::mem::take(&mut self.barriers[full]);
        waiters.iter().for_each(|at| self.blocked[at.warp as usize] &= !at.mask);
        Some(Event::Complete { id: full as u32, waiters })
    }
}

fn arrived(barrier: &Barrier, warp: u32) -> u32 {
    barrier.arrivals.iter().filter(|at| at.warp == warp).fold(0, |mask, at| mask | at.mask)
}

#[derive(Default)]
struct Tally {
    events: usize,
    faulty: usize,
    clean: usize,
}

fn sequence(seed: u64, length: usize, tally: &mut Tally) {
    let mut program = Program::new(Dice::new(seed));
    let mut duel = Duel::new(&program.live, program.live.len() as u32);
    let disciplined = !seed.is_multiple_of(4);
    let (mut log, mut faulty, mut tries) = (Vec::new(), 0, 0);
    while log.len() < length && tries < 8 * length {
        tries += 1;
        let awake = program.awake();
        let Some(event) = program.complete().or_else(|| {
            let warp = (!awake.is_empty()).then(|| program.dice.pick(&awake))?;
            Some(program.next(warp))
        }) else {
            break;
        };
        let memory = matches!(event, Event::Access { .. } | Event::Copy { .. });
        let saved = (disciplined && memory && program.dice.roll(16) > 0).then(|| duel.clone());
        let site = Site(log.len() as u32);
        log.push(event);
        match (duel.step(&log[site.0 as usize], site), saved) {
            (Ok(bytes), Some(saved)) if !bytes.is_empty() => {
                duel = saved;
                log.pop();
            }
            (Ok(bytes), _) => faulty += bytes.len(),
            (Err(difference), _) => {
                log.iter().enumerate().for_each(|(site, event)| eprintln!("{site:3} {}", show(event)));
                panic!("seed {seed}, step {}: {difference}", site.0);
            }
        }
    }
    tally.events += log.len();
    tally.faulty += faulty;
    tally.clean += (faulty == 0) as usize;
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
    let Tally { events, faulty, clean } = tally;
    println!("{count} sequences, {events} events, {faulty} faulty bytes, {clean} sequences without fault");
    assert!(clean > 0 && faulty > 0, "the generator must make both kinds of sequences");
}
