//! The race detector against its definition on real kernels: what it is told of every launch of every filetest, cures
//! included, the definition judges too. Both must find the same bytes unordered, each for a pair that is.
//!
//! `DEFINITION_SEEDS=6 cargo test --test definition -- FOLDER…` compares as many schedules of the cases there; launches
//! that the definition, which forgets nothing, would take too long for are listed, and none of our own may be.

use happens_before::definition::{Compared, Launch, record};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, mpsc};
use veriflash::filetests::{Case, Judge, Kind, find};

/// Accesses of lanes to memory that a launch may make.
const LONGEST: usize = 4_000_000;
/// Launches that wait to be compared: they hold all their events.
const WAITING: usize = 8;

/// What came of a folder of cases.
#[derive(Default)]
struct Tally {
    launches: usize,
    compared: Compared,
    kinds: BTreeMap<String, usize>,
    differences: Vec<String>,
    left_out: Vec<String>,
}

fn main() -> ExitCode {
    let folders: Vec<PathBuf> =
        std::env::args().skip(1).filter(|one| !one.starts_with('-')).map(PathBuf::from).collect();
    let own = folders.is_empty();
    let filetests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let cases = find(if own { std::slice::from_ref(&filetests) } else { &folders }).expect("the cases are readable");
    let cases: Vec<Case> = cases.into_iter().filter(|case| case.kind != Kind::Reject).collect();
    let seeds = std::env::var("DEFINITION_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut tally = compare(&cases, seeds);
    tally.print(cases.len(), seeds);
    if own {
        tally.expect_everything();
    }
    tally.differences.iter().for_each(|difference| println!("DIFFERENCE {difference}"));
    if tally.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Records one case after the other, and compares launches on all cores.
fn compare(cases: &[Case], seeds: u64) -> Tally {
    let (send, receive) = mpsc::sync_channel::<(String, Launch)>(WAITING);
    let (receive, tally) = (Mutex::new(receive), Mutex::new(Tally::default()));
    let next = || receive.lock().ok()?.recv().ok();
    let work = || {
        while let Some((name, launch)) = next() {
            let judged = judge(&name, &launch);
            tally.lock().expect("nobody panics with the tally").add(judged);
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (0..cores).for_each(|_| drop(scope.spawn(work)));
        for case in cases {
            let launches = recorded(case, seeds);
            if launches.is_empty() {
                tally.lock().expect("nobody panics with the tally").left_out.push(format!("{}: no launch", case.name));
            }
            launches.into_iter().for_each(|launch| send.send((case.name.clone(), launch)).expect("somebody compares"));
        }
        drop(send);
    });
    tally.into_inner().expect("nobody panics with the tally")
}

/// All launches under so many schedules. On one thread, so that they come one after the other.
fn recorded(case: &Case, seeds: u64) -> Vec<Launch> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started");
    record(|| pool.install(|| Judge { seeds, ..Judge::default() }.judge(case))).1
}

fn judge(name: &str, launch: &Launch) -> Tally {
    let mut tally = Tally { launches: 1, kinds: launch.kinds(), ..Tally::default() };
    if launch.touches() > LONGEST {
        tally.left_out.push(format!("{name}: {} events", launch.events()));
        return tally;
    }
    match launch.compare() {
        Ok(compared) => tally.compared = compared,
        Err(difference) => tally.differences.push(format!("{name}: {difference}")),
    }
    tally
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.launches += other.launches;
        self.compared += other.compared;
        other.kinds.into_iter().for_each(|(kind, count)| *self.kinds.entry(kind).or_default() += count);
        self.differences.extend(other.differences);
        self.left_out.extend(other.left_out);
    }

    fn print(&mut self, cases: usize, seeds: u64) {
        let Compared { events, faulty: [fence, reach, order], crossed } = self.compared;
        println!("{cases} cases under {seeds} schedules: {} launches, {events} events compared", self.launches);
        println!(
            "unordered bytes: {order} without an edge, {reach} out of reach, {fence} without a proxy fence, {crossed} between clusters"
        );
        let kinds: Vec<String> = self.kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        println!("events: {}", kinds.join(", "));
        self.left_out.sort();
        self.differences.sort();
        self.left_out.iter().for_each(|one| println!("left out: {one}"));
        println!("{} left out, {} differ", self.left_out.len(), self.differences.len());
    }

    /// Our own cases are all compared, and show every kind of fault and of event.
    fn expect_everything(&self) {
        let Compared { faulty, crossed, .. } = self.compared;
        assert!(self.left_out.is_empty(), "every filetest is compared: {:?}", self.left_out);
        assert!(crossed > 0 && faulty.iter().all(|bytes| *bytes > 0), "too little is found: {faulty:?}, {crossed}");
        assert_eq!(self.kinds.len(), EVENTS, "some kind of event does not happen: {:?}", self.kinds.keys());
    }
}

/// Kinds of events that a detector can be told.
const EVENTS: usize = 31;
