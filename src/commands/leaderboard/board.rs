//! The board as people read it, and as JSON.

use super::super::Exit;
use attention::Problem;
use lab::State;
use lab::bench::{Field, Missing, Point};
use lab::leaderboard::{Death, Ranking, Standing, Survey};
use serde_json::{Value, json};
use std::fmt::Write;

/// Everything that is known of the configurations of one problem.
pub struct Board {
    problem: String,
    survey: Survey,
    timed: Timed,
}

enum Timed {
    No { why: String },
    Yes { point: Box<Point>, ranking: Ranking },
}

impl Board {
    pub fn unmeasured(problem: &Problem, survey: Survey, why: &str) -> Board {
        Board { problem: problem.to_string(), survey, timed: Timed::No { why: why.into() } }
    }

    pub fn measured(problem: &Problem, mut survey: Survey, field: Field, ranking: Ranking) -> Board {
        let death = |one: Missing| Death { name: one.name, stage: "gpu".into(), why: one.why };
        survey.deaths.extend(field.fallen.into_iter().map(death));
        Board { problem: problem.to_string(), survey, timed: Timed::Yes { point: Box::new(field.point), ranking } }
    }

    pub fn point(&self) -> Option<&Point> {
        match &self.timed {
            Timed::Yes { point, .. } => Some(point),
            Timed::No { .. } => None,
        }
    }

    /// A missing peer or a tie decides a rank as well as any other; a time that no GPU can reach does not.
    pub fn exit(&self) -> Exit {
        match &self.timed {
            Timed::No { .. } => Exit::Undecided,
            Timed::Yes { point, .. } if is_unbelievable(point) => Exit::Findings,
            Timed::Yes { ranking: Ranking::Undecided { .. }, .. } => Exit::Undecided,
            Timed::Yes { ranking: Ranking::Ranked(_), .. } => Exit::Clean,
        }
    }

    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.problem);
        match &self.timed {
            Timed::No { why } => text.push_str(&self.unranked(why)),
            Timed::Yes { point, ranking: Ranking::Undecided { why } } => {
                text.push_str(&self.unranked(why));
                text.push_str(&trouble(point));
            }
            Timed::Yes { point, ranking: Ranking::Ranked(standings) } => {
                text.push_str(&self.ranks(point, standings));
                text.push_str(&trouble(point));
            }
        }
        text.push_str(&self.dead());
        text
    }

    fn unranked(&self, why: &str) -> String {
        let living: Vec<&str> = self.survey.living.iter().map(|entrant| entrant.name.as_str()).collect();
        format!("\nnot ranked: {why}\nalive: {}\n", living.join(", "))
    }

    fn ranks(&self, point: &Point, standings: &[Standing]) -> String {
        let mut text = format!(
            "\n{:>4}  {:<22} {:>9} {:>8}  {:<22} ties with\n",
            "rank", "", "p50 µs", "TFLOP/s", "speed of the first"
        );
        for standing in standings {
            let name = &point.contenders[standing.contender].name;
            let time = point.percentile(standing.contender, 0.5).map_or(f64::NAN, |seconds| seconds * 1e6);
            let teraflops = point.teraflops(standing.contender).unwrap_or(f64::NAN);
            let chosen = if self.is_planned(name) { " (planner)" } else { "" };
            let ties: Vec<&str> =
                standing.tied_with.iter().map(|other| point.contenders[*other].name.as_str()).collect();
            let speed = standing.against_first.to_string();
            // A String takes whatever is written.
            let _ = writeln!(
                text,
                "{:>4}  {:<22} {time:>9.2} {teraflops:>8.1}  {speed:<22} {}",
                standing.rank,
                format!("{name}{chosen}"),
                ties.join(", ")
            );
        }
        let (rounds, dropped, retaken) = (point.rounds.0.len(), point.rounds.dropped(), point.retaken());
        let control = point.same().map_or(String::new(), |same| format!("; the first against itself {same}"));
        let unseen = point.unseen_calls().map_or(String::new(), |why| format!("; {why}"));
        text + &format!(
            "{rounds} rounds, {dropped} dropped, {retaken} samples taken again, {} calls a sample by {}{control}{unseen}\n",
            point.plan.calls, point.plan.contract
        )
    }

    fn is_planned(&self, name: &str) -> bool {
        self.survey.living.iter().any(|entrant| entrant.planned && entrant.name == name)
    }

    fn dead(&self) -> String {
        let mut text = String::new();
        if !self.survey.deaths.is_empty() {
            text.push_str("\nnot timed, and what it died of:\n");
        }
        for Death { name, stage, why } in &self.survey.deaths {
            let _ = writeln!(text, "  {name:<22} {stage:<10} {}", why.lines().next().unwrap_or_default());
        }
        for (stage, why) in &self.survey.not_run {
            let _ = writeln!(text, "note: stage `{}` was not run: {why}", stage.name());
        }
        text
    }

    pub fn json(&self) -> Value {
        let deaths: Vec<Value> = self
            .survey
            .deaths
            .iter()
            .map(|death| json!({ "name": death.name, "stage": death.stage, "why": death.why }))
            .collect();
        let living: Vec<Value> = self
            .survey
            .living
            .iter()
            .map(|entrant| json!({ "name": entrant.name, "planned": entrant.planned }))
            .collect();
        let not_run: Vec<Value> =
            self.survey.not_run.iter().map(|(stage, why)| json!({ "stage": stage.name(), "why": why })).collect();
        let (point, ranks, why) = match &self.timed {
            Timed::No { why } => (None, None, Some(why)),
            Timed::Yes { point, ranking: Ranking::Undecided { why } } => (Some(point), None, Some(why)),
            Timed::Yes { point, ranking: Ranking::Ranked(standings) } => {
                (Some(point), Some(standings.iter().map(|one| standing_json(point, one)).collect::<Vec<_>>()), None)
            }
        };
        json!({
            "problem": self.problem,
            "ranking": ranks,
            "why": why,
            "alive": living,
            "deaths": deaths,
            "not_run": not_run,
            "point": point,
        })
    }
}

/// An impossible time, or a result that went wrong while it was timed, of anybody.
fn is_unbelievable(point: &Point) -> bool {
    point.contenders.iter().any(|contender| contender.offence.is_some()) || matches!(point.judge(), State::Fail { .. })
}

/// What is wrong with those who were timed, and who could not be.
fn trouble(point: &Point) -> String {
    let offences =
        point.contenders.iter().filter_map(|one| Some(format!("FAILED: {}: {}\n", one.name, one.offence.as_ref()?)));
    let failed = match point.judge() {
        State::Fail { why } => Some(format!("FAILED: {why}\n")),
        _ => None,
    };
    let missing = point.missing.iter().map(|missing| format!("{}: not measured: {}\n", missing.name, missing.why));
    offences.chain(failed).chain(missing).collect()
}

fn standing_json(point: &Point, standing: &Standing) -> Value {
    let name = |number: &usize| point.contenders[*number].name.clone();
    json!({
        "rank": standing.rank,
        "name": name(&standing.contender),
        "ties": standing.tied_with.iter().map(name).collect::<Vec<_>>(),
        "seconds": point.percentile(standing.contender, 0.5),
        "teraflops": point.teraflops(standing.contender),
        "against_first": standing.against_first,
    })
}
