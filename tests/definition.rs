//! measuring
use happens_before::definition::record;
use std::path::PathBuf;
use std::time::Instant;
use veriflash::filetests::{Judge, Kind, find};

fn main() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::args().nth(1).unwrap_or("filetests".into());
    let cases = find(&[root.join(folder)]).expect("readable");
    for case in cases.iter().filter(|case| case.kind != Kind::Reject) {
        let judge = Judge { seeds: 1, ..Judge::default() };
        let start = Instant::now();
        let (_, launches) = record(|| judge.judge(case));
        let ran = start.elapsed();
        for launch in launches {
            let (events, touches) = (launch.events(), launch.touches());
            let start = Instant::now();
            if touches > 3_000_000 {
                println!("{} {events} {touches} {:?} SKIPPED", case.name, ran);
                continue;
            }
            let result = launch.compare();
            let text = match result { Ok(one) => format!("{one:?}"), Err(text) => format!("DIFFERENCE {}", text.chars().take(1500).collect::<String>()) };
            println!("{} {events} {touches} {:?} {:?} {text}", case.name, ran, start.elapsed());
        }
    }
}
