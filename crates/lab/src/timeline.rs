//! What the warps of one block did, when, and which copies and products were in flight: the pipeline of a kernel.
//!
//! Time is the emulator's own, one unit for each instruction of a warp and for each landing. It is the same on every machine and
//! says who waited for whom, not how long a GPU takes.

use std::fmt;

use emulator::Emulator;
use launch::Policy;
use launch::backend::{Backend, Options};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::case::Case;
use crate::harness::{self, Poison};
use crate::request::Settings;

/// So many slices are kept, the first ones.
const MOST_SLICES: usize = 1500;

/// One block of one kernel under one seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    pub kernel: String,
    pub seed: u64,
    pub end: u64,
    /// There were more slices.
    pub cut: bool,
    pub tracks: Vec<Track>,
}

/// A warp, or all copies or products of the block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Track {
    pub name: String,
    /// When it runs, or is in flight; of copies and products several at once.
    pub busy: Spans,
    /// When it waits.
    pub waits: Spans,
}

/// From when until when, in the order of their beginnings: `0-162 648-707`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Spans(pub Vec<(u64, u64)>);

/// Nothing if the emulator cannot run the kernel: the stage says why.
pub(crate) fn of(case: &Case, settings: &Settings) -> Option<Timeline> {
    // Warps take turns, as on a GPU, where there is such a seed.
    let by_turns = settings.seeds.iter().find(|seed| Policy::of_seed(**seed) == Policy::Random);
    let seed = *by_turns.or(settings.seeds.first())?;
    let options =
        Options { seed, instruction_budget: settings.instruction_budget, traced_blocks: 1, ..Options::default() };
    let mut memory = harness::memory(case, settings.data_seed, Poison::Signalling).ok()?;
    let mut loaded = Emulator.load(&case.kernel).ok()?;
    let trace = Emulator.run(&mut loaded, &mut memory, &options).ok()?.trace?;
    let slices = slices(&serde_json::from_str(&trace.json).ok()?);
    let mut timeline = Timeline::new(slices);
    (timeline.kernel, timeline.seed, timeline.cut) = (case.name.clone(), seed, timeline.cut || trace.cut);
    Some(timeline)
}

/// A slice of the first block: its track, whether it is a wait, and when.
struct Slice {
    track: String,
    waits: bool,
    span: (u64, u64),
}

/// Of the Chrome trace events that the emulator writes.
fn slices(trace: &Value) -> Vec<Slice> {
    let events = trace["traceEvents"].as_array().map_or(&[][..], Vec::as_slice);
    let mut slices: Vec<Slice> = events.iter().filter(|event| event["pid"] == 1).filter_map(slice).collect();
    slices.sort_by_key(|slice| slice.span);
    slices
}

fn slice(event: &Value) -> Option<Slice> {
    // Microseconds, with three decimals.
    let units = |field: &str| Some((event[field].as_f64()? * 1000.0).round() as u64);
    let kind = event["cat"].as_str().filter(|_| event["ph"] == "X")?;
    let track = match kind {
        "copy" => "copies".into(),
        "wgmma" => "products".into(),
        _ => format!("warp {}", event["tid"].as_u64()?.checked_sub(1)?),
    };
    let start = units("ts")?;
    Some(Slice { track, waits: kind == "wait", span: (start, start + units("dur")?) })
}

impl Timeline {
    fn new(slices: Vec<Slice>) -> Timeline {
        let cut = slices.len() > MOST_SLICES;
        let kept = &slices[..slices.len().min(MOST_SLICES)];
        let mut tracks: Vec<Track> = Vec::new();
        for slice in kept {
            let place = tracks.iter().position(|track| track.name == slice.track).unwrap_or_else(|| {
                tracks.push(Track { name: slice.track.clone(), busy: Spans::default(), waits: Spans::default() });
                tracks.len() - 1
            });
            let track = &mut tracks[place];
            if slice.waits { &mut track.waits } else { &mut track.busy }.0.push(slice.span);
        }
        // Warps by their numbers, then what they started.
        let number = |track: &Track| track.name.strip_prefix("warp ").and_then(|number| number.parse().ok());
        tracks.sort_by_key(|track| (number(track).unwrap_or(usize::MAX), track.name.clone()));
        let end = kept.iter().map(|slice| slice.span.1).max().unwrap_or(0);
        Timeline { kernel: String::new(), seed: 0, end, cut, tracks }
    }
}

impl Spans {
    /// How many last at once, each time with the moment from which it is so.
    pub(crate) fn depth(&self) -> Vec<(u64, usize)> {
        let mut moments: Vec<u64> = self.0.iter().flat_map(|(start, end)| [*start, *end]).collect();
        moments.sort_unstable();
        moments.dedup();
        let depth = |moment: &u64| self.0.iter().filter(|(start, end)| (*start..*end).contains(moment)).count();
        moments.iter().map(|moment| (*moment, depth(moment))).collect()
    }
}

impl fmt::Display for Spans {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(|(start, end)| format!("{start}-{end}")).collect();
        f.write_str(&texts.join(" "))
    }
}

impl From<Spans> for String {
    fn from(spans: Spans) -> String {
        spans.to_string()
    }
}

impl TryFrom<String> for Spans {
    type Error = String;

    fn try_from(text: String) -> Result<Spans, String> {
        let span = |word: &str| {
            let (start, end) = word.split_once('-')?;
            let (start, end) = (start.parse().ok()?, end.parse().ok()?);
            (start <= end).then_some((start, end))
        };
        let words = text.split(' ').filter(|word| !word.is_empty());
        let spans = words.map(|word| span(word).ok_or_else(|| format!("`{word}` is no span: expected 3-17")));
        let spans: Vec<(u64, u64)> = spans.collect::<Result<_, _>>()?;
        // Whoever reads a log need not draw for hours.
        match spans.len() {
            0..=MOST_SLICES => Ok(Spans(spans)),
            many => Err(format!("{many} spans: expected at most {MOST_SLICES}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(config: usize) -> Timeline {
        let problem = "f16 B1 H1 Sq33 Sk130 D64 full".parse().unwrap();
        let kernel = attention::kernels::kernel(&problem, &attention::configs::CONFIGS[config]).unwrap();
        of(&Case::new(kernel).unwrap(), &Settings::default()).unwrap()
    }

    #[test]
    fn a_block_has_its_warps_and_its_copies() {
        let timeline = timeline(0);
        let names: Vec<&str> = timeline.tracks.iter().map(|track| track.name.as_str()).collect();
        assert_eq!(names, ["warp 0", "warp 1", "warp 2", "warp 3", "copies"]);
        assert_eq!((timeline.seed, timeline.cut), (4, false));
        for track in &timeline.tracks {
            assert!(track.busy.0.iter().chain(&track.waits.0).all(|(start, end)| start <= end && *end <= timeline.end));
        }
        // The barriers of the loop: every warp that works waits.
        assert!(timeline.tracks[..3].iter().all(|track| track.waits.0.len() > 2), "{timeline:?}");
        let most = timeline.tracks[4].busy.depth().iter().map(|(_, depth)| *depth).max();
        assert!(most > Some(4), "copies overlap: {most:?}");
    }

    #[test]
    fn the_same_run_gives_the_same_timeline_and_a_log_keeps_it() {
        let one = timeline(0);
        assert_eq!(one, timeline(0));
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<Timeline>(&text).unwrap(), one);
    }

    #[test]
    fn long_runs_are_cut() {
        let slice = |start: u64| Slice { track: "warp 0".into(), waits: false, span: (start, start + 1) };
        let timeline = Timeline::new((0..2000).map(slice).collect());
        assert_eq!((timeline.cut, timeline.end), (true, 1500));
    }

    #[test]
    fn spans_are_read_strictly() {
        let read = |text: &str| Spans::try_from(text.to_string());
        assert_eq!(read("0-162 648-707").unwrap().0, [(0, 162), (648, 707)]);
        assert_eq!(read("").unwrap().0, []);
        assert!(read(&"1-2 ".repeat(MOST_SLICES)).is_ok() && read(&"1-2 ".repeat(MOST_SLICES + 1)).is_err());
        assert!(["7", "7-3", "a-b", "-1-2"].into_iter().all(|wrong| read(wrong).is_err()));
        assert_eq!(read("0-4 2-6").unwrap().depth(), [(0, 1), (2, 2), (4, 1), (6, 0)]);
    }
}
