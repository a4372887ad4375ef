//! Verdicts as JSON. docs/json.md describes the fields.

use super::super::output::finding_json;
use super::Judged;
use super::table::{Tally, catchers};
use emulator::mutate::{Catch, Mutant, Proof, Verdict};
use serde_json::{Value, json};

pub fn document(judged: &[Judged]) -> Value {
    let all = judged.iter().flat_map(|one| &one.mutants).map(|(_, verdict)| verdict);
    json!({
        "kernels": judged.iter().map(kernel).collect::<Vec<_>>(),
        "total": tally(Tally::of(all.clone())),
        "caught_by": catchers(all),
    })
}

fn kernel(judged: &Judged) -> Value {
    let mutants = judged.mutants.iter().map(|(mutant, verdict)| one(&judged.file, mutant, verdict));
    json!({
        "kernel": judged.names[0],
        "witnesses": judged.names,
        "total": tally(Tally::of(judged.mutants.iter().map(|(_, verdict)| verdict))),
        "mutants": mutants.collect::<Vec<_>>(),
        "findings": judged.findings.iter().map(finding_json).collect::<Vec<_>>(),
        "failures": judged.failures,
    })
}

fn tally(tally: Tally) -> Value {
    let [caught, equivalent, not_executed, missed] = tally.0;
    json!({
        "mutants": tally.total(),
        "caught": caught,
        "equivalent": equivalent,
        "not_executed": not_executed,
        "missed": missed,
        "score": tally.score(),
        "equivalent_share": tally.equivalent(),
    })
}

fn one(file: &str, mutant: &Mutant, verdict: &Verdict) -> Value {
    json!({
        "operator": mutant.operator.name(),
        "file": file,
        "line": mutant.line,
        "text": mutant.text,
        "verdict": verdict.word(),
        "by": match verdict {
            Verdict::Caught(catch) => Some(catch.by()),
            _ => None,
        },
        "finding": match verdict {
            Verdict::Caught(Catch::Finding(finding)) => finding_json(finding),
            _ => Value::Null,
        },
        "proof": match verdict {
            Verdict::Equivalent(proof) => self::proof(proof),
            _ => Value::Null,
        },
        "cause": match verdict {
            Verdict::Missed(cause) => Some(cause.to_string()),
            _ => None,
        },
    })
}

fn proof(proof: &Proof) -> Value {
    let (kind, by, pair) = match proof {
        Proof::Path { by, first, second, .. } => ("path", Some(by), Some([first, second])),
        Proof::Paths { first, second } => ("paths", None, Some([first, second])),
        Proof::NothingToOrder => ("nothing to order", None, None),
        Proof::Stronger => ("stronger", None, None),
        Proof::SameCode { .. } => ("same code", None, None),
    };
    json!({ "kind": kind, "by_line": by, "orders_lines": pair, "text": proof.to_string() })
}
