//! # bench
//!
//! Time against peers, by the measuring protocol: paired rounds in a random order, the candidate twice, an interval of the ratio, a
//! verdict in time and in cycles, floors, and every timed result checked. A slower kernel passes: what is asked is that its speed is
//! known. `samples.csv` has every raw sample.

use serde::{Deserialize, Serialize};

use super::{Log, Stage, counted};
use crate::bench::{Bencher, Duel, Point, lock};
use crate::case::Case;
use crate::figures::{Figure, Subject};
use crate::gpu::{Contract, Refusal};
use crate::guard::{Guard, Objection, Objections};
use crate::hardware::Hardware;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// As it names itself.
    pub gpu: String,
    /// Peers with their versions, in the order of the request.
    pub peers: Vec<String>,
    pub points: Vec<Point>,
    /// Kernels without a point.
    pub failed: Vec<Failed>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    pub subject: Subject,
    pub problem: String,
    pub why: String,
    /// Of its first run, in units of what is allowed, where it is not timed for being wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Figure>,
}

impl Failed {
    fn new(case: &Case, refusal: &Refusal) -> Failed {
        let error = match refusal {
            Refusal::Wrong(error) => Some(*error),
            Refusal::Died(_) => None,
        };
        Failed { subject: case.subject(), problem: case.problem.to_string(), why: refusal.to_string(), error }
    }

    fn objection(&self) -> Objection {
        let guard = self.error.map_or(Guard::AfterTiming, Figure::guard);
        Objection::fail(guard, format!("{}: {}", self.problem, self.why))
    }
}

/// Every case against every peer.
pub(crate) fn run(
    hardware: &Hardware,
    cases: &[Case],
    step: &dyn Fn(),
    interrupted: &dyn Fn() -> bool,
) -> Result<Report, String> {
    let mut bencher = Bencher::new(hardware.cuda.clone(), &hardware.workers, &hardware.peers);
    let mut report = Report {
        gpu: bencher.device().to_string(),
        peers: bencher.roll_call(),
        points: Vec::new(),
        failed: Vec::new(),
    };
    for case in cases {
        if interrupted() {
            return Err("interrupted".into());
        }
        match bencher.point(case, Contract::Graph, true) {
            Ok(point) => report.points.push(point),
            Err(refusal) => report.failed.push(Failed::new(case, &refusal)),
        }
        step();
    }
    Ok(report)
}

impl Log for Report {
    const STAGE: Stage = Stage::Bench;

    fn subjects(&self) -> Vec<Subject> {
        let failed = self.failed.iter().map(|failed| &failed.subject);
        self.points.iter().map(|point| &point.subject).chain(failed).cloned().collect()
    }

    fn objections(&self) -> Objections {
        let points = self.points.iter().map(|point| {
            let own = point.objections().flattened();
            own.into_iter().chain(lock::objections(point)).collect()
        });
        Objections::of_parts(points.chain(self.failed.iter().map(|failed| vec![failed.objection()])))
    }

    const COMPACT: bool = true;

    fn figures(&self) -> String {
        let mut peers: Vec<&str> = vec![];
        for (peer, _) in self.points.iter().flat_map(Point::duels) {
            if !peers.contains(&peer.name.as_str()) {
                peers.push(&peer.name);
            }
        }
        let against = peers.into_iter().map(|peer| format!("; {}", self.against(peer)));
        let decided = self.points.iter().filter(|point| point.judge() == crate::State::Pass).count();
        let problems = counted(self.points.len(), "problem");
        let retaken: usize = self.points.iter().map(Point::retaken).sum();
        let again = if retaken > 0 { format!("; {} taken again", counted(retaken, "sample")) } else { String::new() };
        format!("{problems} on {}, {decided} decided{}{again}", self.gpu_name(), against.collect::<String>())
    }
}

impl Report {
    /// Who won, of every kernel and peer.
    pub(crate) fn duels(&self) -> Vec<Duel> {
        let of_point = |point: &Point| -> Vec<Duel> {
            let duel = |peer: &str, verdict| Duel {
                kernel: point.subject.kernel.clone(),
                problem: point.problem.clone(),
                peer: peer.into(),
                verdict,
            };
            point.duels().map(|(peer, versus)| duel(&peer.name, versus.verdict)).collect()
        };
        self.points.iter().flat_map(of_point).collect()
    }

    fn gpu_name(&self) -> &str {
        self.gpu.split(',').next().unwrap_or_default()
    }

    /// The mean over the problems is never without the least and the most of them.
    fn against(&self, name: &str) -> String {
        let of_peer = self.points.iter().flat_map(Point::duels).filter(|(peer, _)| peer.name == name);
        let ratios: Vec<f64> = of_peer.map(|(_, versus)| versus.time.ratio.value()).collect();
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        format!("{mean:.3} x {name} ({least:.3} to {most:.3})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::State;

    #[test]
    fn a_kernel_that_is_wrong_before_it_is_timed_has_its_error_in_the_log() {
        let config = attention::configs::Config::by_id(1).unwrap();
        let kernel = attention::kernels::kernel(&"B1 H1 S64 D64".parse().unwrap(), &config).unwrap();
        let case = Case::new(kernel).unwrap();
        let refused = |refusal| {
            let failed = vec![Failed::new(&case, &refusal)];
            let report = Report { gpu: "a GPU".into(), peers: vec![], points: vec![], failed };
            (report.failed[0].error, report.objections())
        };
        let (error, objections) = refused(Refusal::Wrong(Figure::new(7.0)));
        assert_eq!((error, objections.guards()), (Some(Figure::new(7.0)), vec![Guard::ErrorRule]));
        assert!(matches!(objections.judge(), State::Fail { why } if why.contains("7.00 times what is allowed")));
        let (error, objections) = refused(Refusal::Died("no memory".into()));
        assert_eq!((error, objections.guards()), (None, vec![Guard::AfterTiming]));
    }
}
