//! The traced clusters of all launches as Chrome trace events: a process per block, a thread per track.

use super::recorder::{Arrow, Recorder, Slice, SliceId, Time, Track};
use launch::backend::Trace;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Most events of a trace: Perfetto opens that many at once, and a file of them has less than 100 MB.
const MOST_EVENTS: usize = 500_000;

/// Thread numbers from which the tracks of the engines count; a block has at most 32 warps.
const FIRST_COPIES: usize = 1000;
const FIRST_PRODUCTS: usize = 2000;

/// Collects the recorders of a run.
#[derive(Debug)]
pub struct Timeline {
    /// Blocks that are traced at each launch.
    wanted: u64,
    /// Events that each launch may have.
    limit: usize,
    /// Are there several launches?
    names_entry: bool,
    entry: String,
    /// When the launch begins, and when the last cluster so far ends.
    start: Time,
    end: Time,
    blocks: u64,
    arrows: u64,
    cut: bool,
    events: Vec<Value>,
    names: Vec<Value>,
}

impl Timeline {
    pub fn new(wanted: u64, launches: usize) -> Timeline {
        Timeline {
            wanted,
            limit: MOST_EVENTS / launches.max(1),
            names_entry: launches > 1,
            entry: String::new(),
            start: 0,
            end: 0,
            blocks: 0,
            arrows: 0,
            cut: false,
            events: vec![],
            names: vec![],
        }
    }

    /// A launch begins when the one before has ended.
    pub fn enter(&mut self, entry: &str) {
        (self.entry, self.start) = (entry.into(), self.end);
    }

    /// A recorder for a cluster of `blocks` blocks, if it is among those that are traced. Each may keep the same number
    /// of events, so that what is cut does not depend on the order in which clusters run.
    pub fn recorder(&self, cluster: u64, blocks: usize, warps: usize) -> Option<Box<Recorder>> {
        let clusters = self.wanted.div_ceil(blocks as u64).max(1);
        (cluster < clusters).then(|| Box::new(Recorder::new(warps, self.limit / clusters as usize)))
    }

    /// Takes what a cluster recorded; `blocks`: the places of its blocks in the grid.
    pub fn add(&mut self, recorder: &Recorder, blocks: &[[u32; 3]]) {
        let drawing = Drawing::new(recorder, blocks.len(), self.blocks, self.start);
        for (index, [x, y, z]) in blocks.iter().enumerate() {
            let name = format!("block ({x},{y},{z})");
            let name = if self.names_entry { format!("{}: {name}", self.entry) } else { name };
            let process = self.blocks + index as u64 + 1;
            self.names.push(json!({ "ph": "M", "pid": process, "name": "process_name", "args": { "name": name } }));
            let order = json!({ "sort_index": process });
            self.names.push(json!({ "ph": "M", "pid": process, "name": "process_sort_index", "args": order }));
        }
        self.names.extend(drawing.threads());
        self.events.extend(drawing.slices());
        for arrow in &recorder.arrows {
            self.arrows += 1;
            self.events.extend(drawing.arrow(arrow, self.arrows).into_iter().flatten());
        }
        self.end = self.end.max(drawing.end());
        self.blocks += blocks.len() as u64;
        self.cut |= recorder.cut;
    }

    /// The file, an event per line.
    pub fn into_trace(self, kernel: &str, seed: u64) -> Trace {
        let note = "one executed warp instruction, or one landing, is 1 ns; not the time of a GPU";
        let mut about = json!({ "kernel": kernel, "seed": seed, "clock": note });
        if self.cut {
            about["cut"] = format!("later events were left out: a trace has at most {MOST_EVENTS}").into();
        }
        let lines = self.names.iter().chain(&self.events).map(Value::to_string).collect::<Vec<_>>();
        let json = format!(
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[\n{}\n]}}\n",
            lines.join(",\n")
        );
        Trace { json, blocks: self.blocks, events: self.events.len() as u64, cut: self.cut }
    }
}

/// A cluster's slices with the threads that they are drawn on.
struct Drawing<'a> {
    recorder: &'a Recorder,
    start: Time,
    /// Process and thread of each slice; none if it is not drawn.
    places: Vec<Option<(u64, usize)>>,
}

impl<'a> Drawing<'a> {
    /// `before`: processes that came before.
    fn new(recorder: &'a Recorder, blocks: usize, before: u64, start: Time) -> Drawing<'a> {
        let warps_per_block = recorder.courses.len() / blocks;
        let mut drawing = Drawing { recorder, start, places: vec![] };
        // Operations of one engine overlap: each takes the first of the engine's threads that is free.
        let mut free: BTreeMap<Track, Vec<Time>> = BTreeMap::new();
        for slice in &recorder.slices {
            let (rank, thread) = match slice.track {
                Track::Warp(warp) => (warp / warps_per_block, warp % warps_per_block + 1),
                Track::Copies(rank) => (rank, FIRST_COPIES + row(free.entry(slice.track).or_default(), slice)),
                Track::Products(rank) => (rank, FIRST_PRODUCTS + row(free.entry(slice.track).or_default(), slice)),
            };
            let drawn = !matches!(slice.track, Track::Warp(_)) || end(slice) > slice.start;
            drawing.places.push(drawn.then_some((before + rank as u64 + 1, thread)));
        }
        drawing
    }

    fn end(&self) -> Time {
        self.start + self.recorder.slices.iter().map(stop).max().unwrap_or(0)
    }

    /// The names of the threads, in the order in which they are shown.
    fn threads(&self) -> Vec<Value> {
        let mut threads: Vec<(u64, usize)> = self.places.iter().flatten().copied().collect();
        threads.sort_unstable();
        threads.dedup();
        let named = |(process, thread): (u64, usize)| {
            let name = match thread {
                FIRST_PRODUCTS.. => numbered("wgmma", thread - FIRST_PRODUCTS),
                FIRST_COPIES.. => numbered("copies", thread - FIRST_COPIES),
                warp => format!("warp {}", warp - 1),
            };
            let event = |kind: &str, args: Value| json!({ "ph": "M", "pid": process, "tid": thread, "name": kind, "args": args });
            [event("thread_name", json!({ "name": name })), event("thread_sort_index", json!({ "sort_index": thread }))]
        };
        threads.into_iter().flat_map(named).collect()
    }

    /// Thread after thread, each in the order of time.
    fn slices(&self) -> Vec<Value> {
        let drawn = self.places.iter().zip(&self.recorder.slices);
        let mut drawn: Vec<_> = drawn.filter_map(|(place, slice)| Some(((*place)?, slice))).collect();
        drawn.sort_by_key(|(place, slice)| (*place, slice.start));
        drawn.into_iter().map(|(place, slice)| self.slice(place, slice)).collect()
    }

    fn slice(&self, (process, thread): (u64, usize), slice: &Slice) -> Value {
        let kind = match slice.track {
            Track::Warp(_) if slice.name.starts_with("lines") => "run",
            Track::Warp(_) => "wait",
            Track::Copies(_) => "copy",
            Track::Products(_) => "wgmma",
        };
        let details = slice.details.iter().map(|(name, value)| ((*name).to_string(), value.clone()));
        json!({
            "ph": "X",
            "pid": process,
            "tid": thread,
            "ts": self.microseconds(slice.start),
            "dur": (stop(slice) - slice.start) as f64 / 1000.0,
            "cat": kind,
            "name": slice.name,
            "args": details.collect::<serde_json::Map<_, _>>(),
        })
    }

    /// Both ends of an arrow, each inside of its slice; none if one is not drawn, or it would point back.
    fn arrow(&self, arrow: &Arrow, number: u64) -> Option<[Value; 2]> {
        let inside = |(slice, time): (SliceId, Time)| {
            let slice = &self.recorder.slices[slice];
            time.clamp(slice.start, stop(slice) - 1)
        };
        let (from, to) = (self.places[arrow.from.0]?, self.places[arrow.to.0]?);
        let event = |kind: &str, (process, thread): (u64, usize), time: Time| {
            let mut event = json!({
                "ph": kind, "pid": process, "tid": thread, "ts": self.microseconds(time),
                "id": number, "cat": "flow", "name": arrow.name,
            });
            if kind == "f" {
                event["bp"] = "e".into();
            }
            event
        };
        let (start, end) = (inside(arrow.from), inside(arrow.to));
        (start <= end).then(|| [event("s", from, start), event("f", to, end)])
    }

    /// The unit of the format.
    fn microseconds(&self, time: Time) -> f64 {
        (self.start + time) as f64 / 1000.0
    }
}

fn end(slice: &Slice) -> Time {
    slice.end.unwrap_or(slice.start)
}

/// The end that is drawn: an operation that lands at once is seen too.
fn stop(slice: &Slice) -> Time {
    end(slice).max(slice.start + 1)
}

/// The first row that is free when the slice begins.
fn row(ends: &mut Vec<Time>, slice: &Slice) -> usize {
    let row = ends.iter().position(|end| *end <= slice.start).unwrap_or(ends.len());
    ends.resize(ends.len().max(row + 1), 0);
    ends[row] = stop(slice);
    row
}

fn numbered(name: &str, row: usize) -> String {
    if row == 0 { name.into() } else { format!("{name} {}", row + 1) }
}
