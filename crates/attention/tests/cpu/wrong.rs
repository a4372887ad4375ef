//! What does not go together panics before anything is computed.

use attention::cpu::{Change, Forward, Sight, Strided};
use attention::problem::Problem;
use attention::scoring::ScoreKind;
use std::panic::catch_unwind;

const NUMBERS: [f32; 512] = [1.0; 512];

/// Four heads, three queries and five keys of eight columns.
fn right(problem: &Problem) -> Forward<'_, f32> {
    let tensor = |rows: usize| Strided::new(&NUMBERS[..4 * rows * 8], [0, rows * 8, 8], 8);
    let (mask, score) = (Sight::Kind(problem.mask()), Change::Kind(ScoreKind::Plain));
    let [q, k, v] = [3, 5, 5].map(tensor);
    Forward { problem, q, k, v, mask, score, numbers: &[], sinks: &[], documents: None, packed: None }
}

#[test]
fn what_does_not_go_together_panics() {
    let problem: Problem = "f32 B1 H4 Sq3 Sk5 D8".parse().unwrap();
    let run = |forward: Forward<f32>| {
        let (mut o, mut lse) = ([0.0; 96], [0.0; 12]);
        forward.run(&mut o, [96, 24, 8], &mut lse);
    };
    run(right(&problem));
    let panics = |change: fn(&mut Forward<f32>)| {
        let caught = catch_unwind(|| {
            let mut forward = right(&problem);
            change(&mut forward);
            run(forward);
        });
        let message = caught.expect_err("a panic");
        message
            .downcast_ref::<String>()
            .cloned()
            .or(message.downcast_ref::<&str>().map(|text| text.to_string()))
            .unwrap()
    };
    let of_another_shape = "a tensor of another shape than the problem has";
    assert_eq!(panics(|forward| forward.q = Strided::new(&NUMBERS[..96], [0, 24, 8], 7)), of_another_shape);
    assert_eq!(panics(|forward| forward.k = Strided::new(&NUMBERS, [0, 40, 8], 9)), of_another_shape);
    assert_eq!(panics(|forward| forward.v = Strided::new(&NUMBERS[..159], [0, 40, 8], 8)), of_another_shape);
    assert_eq!(panics(|forward| forward.v = Strided::new(&NUMBERS, [0, 1 << 63, 8], 8)), of_another_shape);
    assert_eq!(panics(|forward| forward.score = Change::Kind(ScoreKind::Alibi)), "a number for each head");
    assert_eq!(panics(|forward| forward.sinks = &NUMBERS[..3]), "a sink for each head, or none");
    let documents = panics(|forward| forward.documents = Some([&[0; 3], &[0; 4]]));
    assert!(documents.contains("a document for each query and each key"), "{documents}");
    assert_eq!(panics(|forward| forward.packed = Some([&[0, 3], &[0, 5, 5]])), "every sequence has queries and keys");
}
