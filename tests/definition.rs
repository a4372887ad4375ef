//! The race detector against its definition on real kernels: what it is told of every launch of every filetest, cures
//! included, the definition judges too. Both must find the same bytes unordered, each for a pair that is.
//!
//! `DEFINITION_SEEDS=6 DEFINITION_FOLDERS=corpus cargo test --test definition` compares as many schedules of the cases
//! there (folders are separated as in PATH); launches that the definition, which forgets nothing, would take too long for
//! are listed, and none of our own may be.

use happens_before::definition::{Compared, KINDS, Launch, record};
use libtest_mimic::{Arguments, Failed, Trial};
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
    kinds: BTreeMap<&'static str, usize>,
    differences: Vec<String>,
    left_out: Vec<String>,
}

fn main() -> ExitCode {
    let trial = match std::env::var_os("DEFINITION_FOLDERS") {
        Some(folders) => Trial::test("folders_agree_with_the_definition", move || {
            judge_folders(&std::env::split_paths(&folders).collect::<Vec<_>>()).map(drop)
        }),
        None => Trial::test("filetests_agree_with_the_definition", || {
            judge_folders(&[PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("filetests")])?.expect_everything()
        }),
    };
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

fn judge_folders(folders: &[PathBuf]) -> Result<Tally, Failed> {
    let seeds = seeds()?;
    let cases: Vec<Case> = find(folders)?.into_iter().filter(|case| case.kind != Kind::Reject).collect();
    let mut tally = compare(&cases, seeds);
    tally.print(cases.len(), seeds);
    if tally.differences.is_empty() { Ok(tally) } else { Err(tally.differences.join("\n").into()) }
}

/// How many schedules to compare.
fn seeds() -> Result<u64, Failed> {
    let Some(text) = std::env::var_os("DEFINITION_SEEDS") else { return Ok(1) };
    let seeds = text.to_str().and_then(|text| text.parse().ok()).filter(|seeds| *seeds > 0);
    seeds.ok_or_else(|| format!("DEFINITION_SEEDS={}: expected a number from 1 on", text.display()).into())
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
        let Compared { events, faulty: [fence, reach, order], crossed, early } = self.compared;
        println!("{cases} cases under {seeds} schedules: {} launches, {events} events compared", self.launches);
        println!(
            "unordered bytes: {order} without an edge, {reach} out of reach, {fence} without a proxy fence, {crossed} between clusters, \
             {early} of earlier grids"
        );
        let kinds: Vec<String> = self.kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        println!("events: {}", kinds.join(", "));
        self.left_out.sort();
        self.differences.sort();
        self.left_out.iter().for_each(|one| println!("left out: {one}"));
        println!("{} left out, {} differ", self.left_out.len(), self.differences.len());
    }

    /// Our own cases are all compared, and show every kind of fault and of event.
    fn expect_everything(&self) -> Result<(), Failed> {
        let Compared { faulty, crossed, early, .. } = self.compared;
        let silent: Vec<&str> = KINDS.iter().copied().filter(|kind| !self.kinds.contains_key(kind)).collect();
        if !self.left_out.is_empty() {
            return Err(format!("not every filetest is compared: {:?}", self.left_out).into());
        }
        if crossed == 0 || early == 0 || faulty.contains(&0) {
            return Err(format!("too little is found: {faulty:?}, {crossed}, {early}").into());
        }
        if !silent.is_empty() {
            return Err(format!("kinds of events that do not happen: {silent:?}").into());
        }
        Ok(())
    }
}
