//! Implementations of others, each in a process of its own that speaks lines of JSON: one that dies or hangs takes nobody with it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use attention::Problem;
use attention::problem::DType;
use attention::scoring::ScoreKind;
use attention::visibility::MaskKind;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::plan::{Plan, REST};
use crate::figures::Figure;
use crate::measure::{Clocks, Reading};
use crate::process::group;

/// How long a peer may take: to start and compile for a problem, and for a sample.
const START: Duration = Duration::from_secs(240);
const SAMPLE: Duration = Duration::from_secs(20);

/// Where workers come from.
#[derive(Clone, Debug)]
pub struct Workers {
    pub python: PathBuf,
    /// The script `peers/worker.py`.
    pub(super) script: PathBuf,
    /// Where the scripts lie.
    pub(super) _folder: Option<Arc<TempDir>>,
}

/// Why a peer has no time. Never a slow number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerError(pub String);

/// A peer's process.
pub struct Peer {
    pub name: String,
    /// What it says of itself: versions.
    pub describes: String,
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
}

impl Workers {
    pub fn start(&self, name: &str) -> Result<Peer, PeerError> {
        Peer::start(&self.python, &self.script, name)
    }
}

impl Peer {
    fn start(python: &Path, script: &Path, name: &str) -> Result<Peer, PeerError> {
        let mut command = Command::new(python);
        command.arg(script).arg(name).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        group::apart(&mut command);
        let refused = |error: std::io::Error| PeerError(format!("{} does not start: {error}", python.display()));
        let mut child = command.spawn().map_err(refused)?;
        group::remember(&child);
        let (Some(requests), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(PeerError("its pipes are gone".into()));
        };
        let (send, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut peer = Peer { name: name.into(), describes: String::new(), child, requests, answers };
        let ready = peer.answer(START)?;
        peer.describes = ready["ready"].as_str().unwrap_or_default().into();
        Ok(peer)
    }

    /// Makes ready for a problem; the largest error of its results, in units of what is allowed.
    pub fn open(&mut self, problem: &Problem, plan: Plan) -> Result<Figure, PeerError> {
        let described = describe(problem)?;
        let plan = json!({
            "contract": plan.contract.name(), "calls": plan.calls, "sets": plan.sets, "warm_ups": plan.warm_ups,
            "rest": REST.as_secs_f64(),
        });
        let answer = self.ask(&json!({ "open": described, "plan": plan }), START)?;
        number(&answer, "error").map(Figure::new)
    }

    pub fn sample(&mut self) -> Result<Reading, PeerError> {
        let answer = self.ask(&json!({ "sample": true }), SAMPLE)?;
        let megahertz = answer["megahertz"].as_f64().map(Figure::new);
        let [events, timer, host] = ["events", "timer", "host"].map(|clock| number(&answer["clocks"], clock));
        let clocks = Some(Clocks::new(events?, timer?, host?));
        Ok(Reading { seconds: Figure::new(number(&answer, "seconds")?), megahertz, clocks })
    }

    /// Cycles of a launch that does nothing, in its process.
    pub fn launch_cycles(&mut self) -> Result<Option<Figure>, PeerError> {
        let answer = self.ask(&json!({ "launch": true }), SAMPLE)?;
        Ok(answer["cycles"].as_f64().map(Figure::new))
    }

    /// The error of what the last sample left.
    pub fn verify(&mut self) -> Result<Figure, PeerError> {
        number(&self.ask(&json!({ "verify": true }), START)?, "error").map(Figure::new)
    }

    fn ask(&mut self, request: &Value, limit: Duration) -> Result<Value, PeerError> {
        let sent = writeln!(self.requests, "{request}").and_then(|()| self.requests.flush());
        sent.map_err(|error| PeerError(format!("its process is gone: {error}")))?;
        self.answer(limit)
    }

    /// With all that it has started; once, since its number may be another's afterwards.
    fn end(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            group::end(&mut self.child);
            let _ = self.child.wait();
        }
    }

    fn answer(&mut self, limit: Duration) -> Result<Value, PeerError> {
        let line = self.answers.recv_timeout(limit).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                // What it has put on the GPU would run beside everybody else's samples, and its answer come when something else is asked.
                self.end();
                PeerError(format!("no answer within {} s, so its process was ended", limit.as_secs()))
            }
            RecvTimeoutError::Disconnected => PeerError("its process ended".into()),
        })?;
        let answer: Value =
            serde_json::from_str(&line).map_err(|error| PeerError(format!("`{line}` is no answer: {error}")))?;
        match answer["failed"].as_str() {
            Some(why) => Err(PeerError(why.into())),
            None => Ok(answer),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It holds nothing that needs an orderly end, and may hang.
        self.end();
        group::forget(&self.child);
    }
}

fn number(answer: &Value, field: &str) -> Result<f64, PeerError> {
    answer[field].as_f64().ok_or_else(|| PeerError(format!("`{answer}` has no number `{field}`")))
}

/// What peers compute: plain scores, no mask or a causal one.
fn describe(problem: &Problem) -> Result<Value, PeerError> {
    let causal = match problem.mask() {
        MaskKind::None => "full",
        MaskKind::CausalBottomRight => "causal",
        MaskKind::CausalTopLeft if problem.queries() == problem.keys() => "causal",
        _ => return Err(PeerError(format!("peers have no kernel for {problem}"))),
    };
    let plain = problem.packed().is_none()
        && problem.score() == ScoreKind::Plain
        && !problem.sinks()
        && !problem.documents()
        && problem.head_dim() == problem.value_dim();
    if !plain {
        return Err(PeerError(format!("peers have no kernel for {problem}")));
    }
    let dtype = match problem.dtype() {
        DType::F16 => "f16",
        DType::Bf16 => "bf16",
        DType::F32 => return Err(PeerError("peers compute in f16 and bf16".into())),
    };
    Ok(json!({
        "batch": problem.batch(), "heads": problem.heads(), "kv_heads": problem.kv_heads(), "queries": problem.queries(),
        "keys": problem.keys(), "dim": problem.head_dim(), "mask": causal, "dtype": dtype,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker that does what the script says.
    fn worker(script: &str) -> Result<Peer, PeerError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(script.as_bytes()).unwrap();
        Peer::start(Path::new("sh"), file.path(), "mock")
    }

    fn problem() -> Problem {
        "B1 H1 S64 D64".parse().unwrap()
    }

    fn plan() -> Plan {
        Plan { contract: super::super::plan::Contract::Graph, calls: 2, sets: 2, warm_ups: 2, warm_up_sets: 1 }
    }

    #[test]
    fn a_peer_answers_line_by_line() {
        let mut peer = worker(
            "echo '{\"ready\": \"mock 1.0\"}'; read a; echo '{\"error\": 0.5}'; read b; \
             echo '{\"seconds\": 1e-5, \"megahertz\": 1980, \"clocks\": {\"events\": 2e-5, \"timer\": 3e-5, \"host\": 4e-5}}'; \
             read c; echo '{\"seconds\": 1e-5, \"megahertz\": 1980}'",
        )
        .unwrap();
        assert_eq!(peer.describes, "mock 1.0");
        assert_eq!(peer.open(&problem(), plan()), Ok(Figure::new(0.5)));
        let (megahertz, clocks) = (Some(Figure::new(1980.0)), Some(Clocks::new(2e-5, 3e-5, 4e-5)));
        assert_eq!(peer.sample(), Ok(Reading { seconds: Figure::new(1e-5), megahertz, clocks }));
        assert!(peer.sample().unwrap_err().0.contains("has no number `events`"), "a time without its clocks is none");
        assert!(peer.sample().is_err(), "it has ended");
    }

    #[test]
    fn a_peer_that_dies_or_talks_nonsense_is_an_error_with_its_words() {
        assert_eq!(worker("exit 1").err(), Some(PeerError("its process ended".into())));
        assert!(worker("echo hello").err().unwrap().0.contains("`hello` is no answer"));
        let mut peer = worker("echo '{\"ready\": \"x\"}'; read a; echo '{\"failed\": \"out of memory\"}'").unwrap();
        assert_eq!(peer.open(&problem(), plan()), Err(PeerError("out of memory".into())));
        let missing = Peer::start(Path::new("/no/such/python"), Path::new("x"), "mock").err().unwrap();
        assert!(missing.0.contains("does not start"));
    }

    #[test]
    fn what_peers_cannot_compute_is_said_before_they_are_asked() {
        let described = |text: &str| describe(&text.parse().unwrap());
        assert!(described("B1 H4/2 Sq1 Sk64 D64 causal").is_ok());
        for text in ["B1 H1 S64 D64 window3/0", "B1 H1 S64 D64 softcap30", "B1 H1 S64 D64/128", "B1 H1 S64 D64 sinks"] {
            assert!(described(text).is_err(), "{text}");
        }
    }
}
