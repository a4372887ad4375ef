//! The main loop of each kernel on each target, with marks, and what its loops hold.

use std::fmt::Write;

use serde::Serialize;

use crate::pack::{Files, code_path, squeezed};
use crate::report::Facts;
use crate::report::chart::escape;
use crate::sass::{Class, Counts, Function, Listing, Loop, loops, main_loop};
use crate::stages::{Record, counted};

/// Listings have this many bytes in all, so that the page stays small; of the others it has the counts.
const MOST_BYTES: usize = 260_000;

#[derive(Serialize)]
pub(super) struct View {
    nothing: String,
    legend: Vec<(char, &'static str, &'static str)>,
    classes: Vec<&'static str>,
    codes: Vec<Code>,
}

/// One function, and everywhere that it is the same.
#[derive(Serialize)]
struct Code {
    /// Kernels with their targets.
    places: Vec<Place>,
    function: String,
    facts: String,
    loops: Vec<Row>,
    /// The main loop as markup; empty where there is none, or no room.
    listing: String,
    has_loop: bool,
    #[serde(skip)]
    text: String,
}

#[derive(Serialize)]
struct Place {
    kernel: String,
    targets: Vec<(String, String)>,
}

/// What a loop holds.
#[derive(Serialize)]
struct Row {
    label: String,
    depth: usize,
    is_main: bool,
    all: usize,
    counts: Vec<usize>,
}

pub(super) fn view(facts: &Facts, files: &Files) -> View {
    let nothing = match &facts.evidence.code {
        Record::NotRun { why } => format!("code was not run: {why}."),
        Record::Ran(_) => String::new(),
    };
    let mut codes = codes(facts, files);
    let mut bytes = 0;
    for code in &mut codes {
        bytes += code.listing.len();
        if bytes > MOST_BYTES {
            bytes -= code.listing.len();
            code.listing.clear();
        }
    }
    let marked = Class::ALL.into_iter().filter_map(|class| Some((class.letter()?, class.name(), tone(class))));
    View { nothing, legend: marked.collect(), classes: Class::ALL.map(Class::name).into(), codes }
}

/// Every function of every disassembly; equal ones once.
fn codes(facts: &Facts, files: &Files) -> Vec<Code> {
    let Record::Ran(log) = &facts.evidence.code else { return vec![] };
    let mut codes: Vec<Code> = Vec::new();
    for (entry, cubin) in log.kernels.iter().flat_map(|entry| entry.cubins.iter().map(move |cubin| (entry, cubin))) {
        let (path, text) = disassembly(files, &entry.subject.kernel, &cubin.target);
        // What cannot be read has failed the stage already.
        let Ok(listing) = Listing::read(&text) else { continue };
        for code in listing.functions.iter().map(code) {
            let place = match codes.iter().position(|known| known.text == code.text && known.function == code.function)
            {
                Some(place) => place,
                None => {
                    codes.push(code);
                    codes.len() - 1
                }
            };
            codes[place].add(&entry.subject.kernel, &cubin.target, &path);
        }
    }
    codes
}

/// What nvdisasm printed, and where a pack has it.
fn disassembly(files: &Files, kernel: &str, target: &str) -> (String, String) {
    let path = code_path(kernel, target, "sass");
    let text = files.get(&path).and_then(|bytes| squeezed::unsqueeze(bytes));
    (path, text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default())
}

impl Code {
    fn add(&mut self, kernel: &str, target: &str, path: &str) {
        let target = (target.to_string(), path.to_string());
        match self.places.iter_mut().find(|place| place.kernel == kernel) {
            Some(place) => place.targets.push(target),
            None => self.places.push(Place { kernel: kernel.into(), targets: vec![target] }),
        }
    }
}

fn code(function: &Function) -> Code {
    let (loops, instructions) = (loops(function), function.without_padding());
    let main = main_loop(&loops);
    let counts: Counts = instructions.iter().map(|one| one.class).collect();
    let row = |(index, one): (usize, &Loop)| Row {
        label: one.label.clone(),
        depth: one.depth,
        is_main: main == Some(index),
        all: one.counts.all(),
        counts: Class::ALL.map(|class| one.counts.of(class)).into(),
    };
    Code {
        places: vec![],
        function: function.name.clone(),
        facts: facts(&counts, main.map(|main| &loops[main].counts)),
        loops: loops.iter().enumerate().map(row).collect(),
        listing: main.map_or(String::new(), |main| listing(function, &loops[main])),
        has_loop: main.is_some(),
        text: instructions.iter().map(|one| format!("{:x} {}\n", one.address, one.text)).collect(),
    }
}

/// `750 instructions: 32 tensor-core, 18 copying asynchronously; 285 in the main loop: 32 tensor-core, …`.
fn facts(all: &Counts, main: Option<&Counts>) -> String {
    let of = |counts: &Counts| {
        let copied = counts.of(Class::CopyIn) + counts.of(Class::CopyOut);
        format!("{} tensor-core, {copied} copying asynchronously", counts.of(Class::Tensor))
    };
    let main = main.map_or(String::new(), |main| format!("; {} in the main loop: {}", main.all(), of(main)));
    format!("{}: {}{main}", counted(all.all(), "instruction"), of(all))
}

/// `0ec0 T HMMA.16816.F32 R56, R16.reuse, R68, RZ`, a line each; what has no letter has no markup.
fn listing(function: &Function, main: &Loop) -> String {
    let mut text = String::new();
    for index in &main.body {
        let one = &function.instructions[*index];
        for (label, _) in function.labels.iter().filter(|(_, place)| place == index) {
            let _ = writeln!(text, "{}:", escape(label));
        }
        let (address, code) = (one.address, escape(&one.text));
        let _ = match one.class.letter() {
            Some(letter) => writeln!(text, "{address:04x} <b class={}>{letter} {code}</b>", tone(one.class)),
            None => writeln!(text, "{address:04x}   {code}"),
        };
    }
    text
}

/// The colour of a mark: what computes, what copies, what touches memory, what waits, and what should not be there.
fn tone(class: Class) -> &'static str {
    match class {
        Class::Tensor => "t",
        Class::CopyIn | Class::CopyOut => "c",
        Class::Matrix | Class::Shared | Class::Global => "m",
        Class::Wait | Class::Barrier | Class::Fence => "w",
        Class::Local | Class::Trap => "x",
        Class::Special | Class::Branch | Class::Other => "o",
    }
}
