use super::series::{contenders, families, length_text};
use super::*;
use crate::bench::{Contender, Missing, Point, test_point};
use crate::figures::Figure;

/// A point whose peers take so many microseconds, where the candidate takes ten.
pub(in crate::report) fn point(problem: &str, peers: &[(&str, f64)]) -> Point {
    let times: Vec<f64> = [10.0, 10.0].into_iter().chain(peers.iter().map(|(_, time)| *time)).collect();
    let mut point = test_point(&times);
    point.problem = problem.into();
    for (contender, (name, _)) in point.contenders.iter_mut().skip(2).zip(peers) {
        contender.name = name.to_string();
    }
    point
}

/// Four problems of two families, with two peers, of which one is once missing; the clock falls in the last round.
pub(in crate::report) fn points() -> Vec<Point> {
    let mut points = vec![
        point("B4 H8 S512 D64 full", &[("fa2", 12.0), ("cudnn", 9.0)]),
        point("B2 H8 S1024 D64 full", &[("fa2", 10.05), ("cudnn", 8.0)]),
        point("B4 H8 S512 D128 causal", &[("fa2", 14.0), ("cudnn", 10.0)]),
        point("B1 H8 S2048 D64 full", &[("fa2", 20.0)]),
    ];
    points[3].missing.push(Missing { name: "cudnn".into(), why: "its process ended".into() });
    for (number, round) in points[0].rounds.0.iter_mut().enumerate() {
        let clock = if number == 19 { 1500.0 } else { 1980.0 - number as f64 };
        round.readings.iter_mut().for_each(|reading| reading.megahertz = Some(Figure::new(clock)));
    }
    points
}

/// As where nobody read the clock.
pub(in crate::report) fn unclocked(mut point: Point) -> Point {
    for reading in point.rounds.0.iter_mut().flat_map(|round| &mut round.readings) {
        reading.megahertz = None;
    }
    point
}

#[test]
fn numbers_have_one_decimal_and_no_more_letters_than_they_need() {
    let texts = [1.0, 0.25, -0.04, 12.34, -3.0].map(number);
    assert_eq!(texts, ["1", "0.2", "0", "12.3", "-3"]);
    assert_eq!(polyline(&[(0.0, 1.0), (0.0, 2.0), (3.0, 2.0), (3.04, 2.0), (4.0, 3.5)]), "M0 1v1h3l1 1.5");
    assert_eq!(polyline(&[(0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (0.0, 1.5), (2.0, 1.5), (4.0, 1.5)]), "M0 0v2v-0.5h4");
}

/// Many short steps end where one long one does: what is rounded is the place, not the step.
#[test]
fn rounding_does_not_add_up() {
    let points: Vec<(f64, f64)> = (0..1000).map(|step| (f64::from(step) * 0.14, f64::from(step % 2))).collect();
    let steps = polyline(&points);
    let sum: f64 = steps.split('l').skip(1).filter_map(|step| step.split(' ').next()?.parse::<f64>().ok()).sum();
    assert!((sum - 139.9).abs() < 0.11, "{sum}");
}

#[test]
fn text_is_never_markup() {
    let mut svg = Svg::new(10.0, 10.0, "\"><script>");
    svg.text("tick", (0.0, 0.0), "a < b & 'c'");
    let text = svg.finish();
    assert!(text.contains("a &lt; b &amp; &#39;c&#39;") && !text.contains("<script"), "{text}");
}

#[test]
fn points_that_differ_in_length_are_a_family() {
    let points = points();
    let families: Vec<(String, Vec<u32>)> = families(&points)
        .into_iter()
        .map(|family| (family.name, family.points.iter().map(|(length, _)| *length).collect()))
        .collect();
    let expected =
        [("f16 H8 D64 full, graph, cold", vec![512, 1024, 2048]), ("f16 H8 D128 causal, graph, cold", vec![512])];
    assert_eq!(families, expected.map(|(name, lengths)| (name.to_string(), lengths)));
    assert_eq!(contenders(&points), ["candidate", "fa2", "cudnn"]);
    assert_eq!([512, 2048, 3000, 65_536].map(length_text), ["512", "2k", "3000", "64k"]);
}

#[test]
fn a_problem_that_nobody_knows_has_its_ratio_and_no_curve() {
    let unknown = [point("matmul of the year", &[("fa2", 12.0)])];
    assert!(throughput::throughput(&unknown).is_empty() && heat::heat(&unknown).is_empty());
    assert!(serde_json::to_string(&forest::forest(&unknown)).unwrap().contains("FASTER"));
}

#[test]
fn forest() {
    let mut points = points();
    points.truncate(2);
    points[1].contenders[2].name = "<fa2>".into();
    insta::assert_snapshot!(serde_json::to_string_pretty(&forest::forest(&points)).unwrap());
}

#[test]
fn throughput() {
    insta::assert_snapshot!(throughput::throughput(&points())[0].svg.replace("/>", "/>\n"));
}

#[test]
fn heat() {
    let maps = heat::heat(&points());
    assert_eq!(maps.iter().map(|map| map.name.as_str()).collect::<Vec<_>>(), ["fa2", "cudnn"]);
    insta::assert_snapshot!(maps[1].svg.replace("/>", "/>\n"));
}

#[test]
fn samples() {
    let points = points();
    let names = contenders(&points);
    let text = distribution::distribution(&points[0], &names).unwrap() + "\n" + &clock::clock(&points[0]).unwrap();
    insta::assert_snapshot!(text.replace("/>", "/>\n"));
    assert!(clock::clock(&unclocked(points[1].clone())).is_none());
}

/// Every class that a chart gives is one that the style sheet knows.
#[test]
fn no_class_is_without_a_style() {
    let (points, style) = (points(), include_str!("../page/templates/style.css"));
    let names = contenders(&points);
    let mut drawn: Vec<String> = throughput::throughput(&points).into_iter().map(|panel| panel.svg).collect();
    drawn.extend(heat::heat(&points).into_iter().map(|panel| panel.svg));
    drawn.extend(
        points.iter().flat_map(|point| [distribution::distribution(point, &names), clock::clock(point)]).flatten(),
    );
    drawn.push(serde_json::to_string(&forest::forest(&points)).unwrap().replace("\\\"", "\""));
    let drawn = drawn.concat();
    for class in
        drawn.split("class=\"").skip(1).filter_map(|rest| rest.split('"').next()).flat_map(|all| all.split(' '))
    {
        // `tick` is what every text looks like.
        assert!(class == "tick" || style.contains(&format!(".{class}")), "{class}");
    }
}

/// The values of an attribute.
fn values<'a>(drawn: &'a str, name: &str) -> Vec<&'a str> {
    drawn.split(&format!(" {name}=\"")).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Without rounds, with one, and with figures that are no numbers: nothing is drawn outside, and nothing panics.
#[test]
fn strange_points_have_charts_too() {
    let mut none = point("B1 H1 S64 D64", &[("fa2", 12.0)]);
    none.rounds.0.clear();
    let mut one = point("B1 H1 S128 D64", &[("fa2", 12.0)]);
    one.rounds.0.truncate(1);
    one.peaks.operations = Figure::new(f64::INFINITY);
    let mut endless = point("B1 H1 S256 D64", &[("fa2", f64::INFINITY)]);
    endless.contenders.push(Contender { name: "late".into(), ..endless.contenders[2].clone() });
    let points = [none, one, endless];
    let names = contenders(&points);
    let mut drawn = serde_json::to_string(&forest::forest(&points)).unwrap();
    throughput::throughput(&points).iter().chain(&heat::heat(&points)).for_each(|panel| drawn += &panel.svg);
    points.iter().filter_map(|point| distribution::distribution(point, &names)).for_each(|svg| drawn += &svg);
    let drawn = drawn.replace("\\\"", "\"");
    for value in ["d", "x", "y", "width", "height"].iter().flat_map(|name| values(&drawn, name)) {
        assert!(value.chars().all(|letter| letter.is_ascii_digit() || ".- MLlhv".contains(letter)), "{value}");
    }
}
