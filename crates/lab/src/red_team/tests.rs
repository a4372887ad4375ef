//! Every attack that needs no GPU is caught by the check that it names, and passes where that check is switched off. Those that need ptxas
//! are tried where it is, and told of where it is not.

use super::*;

fn here() -> impl Iterator<Item = &'static Attack> {
    attacks().filter(|attack| attack.place != Place::Gpu)
}

/// What cannot be tried on this machine.
fn skipped(attack: &Attack, why: &str) -> Option<String> {
    println!("skipped: {}: {why}", attack.name);
    (!attack.place.may_lack(why)).then(|| format!("{}: {why}", attack.name))
}

#[test]
fn every_attack_is_caught_by_its_named_check() {
    let faults: Vec<String> = here()
        .collect::<Vec<_>>()
        .into_par_iter()
        .filter_map(|attack| match attack.run() {
            Ended::Caught { .. } => None,
            Ended::NotRun { why } => skipped(attack, &why),
            other => Some(format!("{}: {other:?}", attack.name)),
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_attack_passes_where_its_check_is_switched_off() {
    let faults: Vec<String> = here()
        .collect::<Vec<_>>()
        .into_par_iter()
        .filter_map(|attack| match attack.unguarded() {
            Ok(State::Pass) => None,
            Err(why) => skipped(attack, &why),
            other => Some(format!("{}: {other:?}", attack.name)),
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn there_are_at_least_25_and_each_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<&str> = here().map(|attack| attack.name).collect();
    assert!(names.len() >= 25 && names.len() == here().count(), "{}", names.len());
}

#[test]
fn what_passes_is_shouted_and_what_was_not_run_is_counted_apart() {
    let all: Vec<&'static Attack> = attacks().take(4).collect();
    let by = |guard| (guard, "why".to_string());
    let ended = [
        Ended::Caught { by: by(all[0].guards[0]).0, why: by(all[0].guards[0]).1 },
        Ended::CaughtByOther { by: Guard::Fits, why: "why".into() },
        Ended::Passed,
        Ended::NotRun { why: "needs a GPU".into() },
    ];
    let report = Report { tried: all.into_iter().zip(ended).collect() };
    let text = report.to_string();
    assert!(text.ends_with("1 not run\ncaught 1 of 3"), "{text}");
    assert!(
        text.contains("fits INSTEAD OF") && text.contains("NOBODY") && text.contains("not run: needs a GPU"),
        "{text}"
    );
    assert!(!report.holds());
}

#[test]
fn only_what_a_machine_lacks_may_be_left_out() {
    let of = |place: Place, why: &str| {
        let attack = attacks().find(|attack| attack.place == place).unwrap();
        Report { tried: vec![(attack, Ended::NotRun { why: why.into() })] }.holds()
    };
    assert!(of(Place::Assembler, "needs ptxas") && of(Place::Gpu, "needs a GPU"));
    assert!(!of(Place::Assembler, "the kernel has no `ld.param` any more"));
    assert!(!of(Place::Emulator, "needs a GPU"));
}
