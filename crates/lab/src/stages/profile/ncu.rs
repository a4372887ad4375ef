//! What Nsight Compute is asked for, and its answer as CSV.

use super::{Profiled, Stall};
use crate::figures::Figure;

const TIME: &str = "gpu__time_duration.sum";
const ACTIVE: &str = "sm__cycles_active.avg.pct_of_peak_sustained_elapsed";
/// "SM Busy" of the section "Compute Workload Analysis".
const BUSY: &str = "sm__instruction_throughput.avg.pct_of_peak_sustained_active";
const TENSOR: &str = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active";
const MEMORY: &str = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
const CACHE: &str = "lts__throughput.avg.pct_of_peak_sustained_elapsed";

/// Metric names of what warps wait for are this, the reason, and the rest.
const STALLED: (&str, &str) = ("smsp__average_warps_issue_stalled_", "_per_issue_active.ratio");
/// Reasons of the section "Warp State Statistics", in the words of the metrics; `selected` is no stall. Not every GPU has all.
const REASONS: [&str; 17] = [
    "barrier",
    "branch_resolve",
    "dispatch_stall",
    "drain",
    "gmma",
    "imc_miss",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "membar",
    "mio_throttle",
    "misc",
    "no_instruction",
    "not_selected",
    "short_scoreboard",
    "sleeping",
    "wait",
];
/// Stalls that are kept.
const TOP: usize = 5;

/// All of them, as `--metrics` takes them.
pub fn metrics() -> String {
    let stalls = REASONS.map(stalled);
    let all = [TIME, ACTIVE, BUSY, TENSOR, MEMORY, CACHE].map(String::from).into_iter().chain(stalls);
    all.collect::<Vec<_>>().join(",")
}

fn stalled(reason: &str) -> String {
    format!("{}{reason}{}", STALLED.0, STALLED.1)
}

/// Reads `--csv --page raw`: lines of its own, the names of columns, their units, and a row for each launch.
pub fn read(text: &str) -> Result<Vec<Profiled>, String> {
    let mut rows = text.lines().filter(|line| line.starts_with('"')).map(fields);
    let names = rows.next().ok_or("ncu printed no table")?;
    let units = rows.next().ok_or("ncu printed no units")?;
    let table = Table { names, units };
    rows.map(|row| table.launch(&row)).collect()
}

struct Table {
    names: Vec<String>,
    units: Vec<String>,
}

impl Table {
    fn column(&self, name: &str) -> Result<usize, String> {
        let found = self.names.iter().position(|other| other == name);
        found.ok_or_else(|| format!("ncu's table has no column `{name}`"))
    }

    fn text(&self, row: &[String], name: &str) -> Result<String, String> {
        row.get(self.column(name)?).cloned().ok_or_else(|| format!("a row of ncu's table ends before `{name}`"))
    }

    /// Numbers have commas between thousands.
    fn number(&self, row: &[String], name: &str) -> Result<f64, String> {
        let text = self.text(row, name)?;
        text.replace(',', "").parse().map_err(|_| format!("ncu says `{text}` for `{name}`: expected a number"))
    }

    fn launch(&self, row: &[String]) -> Result<Profiled, String> {
        let share = |name: &str| self.number(row, name).map(Figure::new);
        let mut stalls: Vec<(f64, &str)> = Vec::new();
        for reason in REASONS.into_iter().filter(|reason| self.column(&stalled(reason)).is_ok()) {
            stalls.push((self.number(row, &stalled(reason))?, reason));
        }
        stalls.sort_by(|a, b| b.0.total_cmp(&a.0));
        let stall =
            |(cycles, reason): &(f64, &str)| Stall { reason: reason.replace('_', " "), cycles: Figure::new(*cycles) };
        Ok(Profiled {
            entry: self.text(row, "Kernel Name")?,
            grid: self.text(row, "Grid Size")?,
            block: self.text(row, "Block Size")?,
            microseconds: Figure::new(self.microseconds(row)?),
            active: share(ACTIVE)?,
            busy: share(BUSY)?,
            tensor: share(TENSOR)?,
            memory: share(MEMORY)?,
            cache: share(CACHE)?,
            stalls: stalls.iter().filter(|(cycles, _)| *cycles > 0.0).take(TOP).map(stall).collect(),
        })
    }

    fn microseconds(&self, row: &[String]) -> Result<f64, String> {
        let unit = self.text(&self.units, TIME)?;
        let factor = match unit.as_str() {
            "ns" | "nsecond" => 1e-3,
            "us" | "usecond" => 1.0,
            "ms" | "msecond" => 1e3,
            _ => return Err(format!("ncu says `{unit}` is the unit of time: expected ns, us or ms")),
        };
        Ok(self.number(row, TIME)? * factor)
    }
}

/// The fields of a line, all in quotes; a quote within is written twice.
fn fields(line: &str) -> Vec<String> {
    let inner = line.strip_prefix('"').unwrap_or(line);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    inner.split("\",\"").map(|field| field.replace("\"\"", "\"")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[&str; 2]]) -> String {
        let mut names = vec!["Kernel Name".to_string(), "Block Size".into(), "Grid Size".into()];
        names.extend(metrics().split(',').map(String::from));
        let units: Vec<String> =
            names.iter().map(|name| if name == TIME { "ns".into() } else { String::new() }).collect();
        let row = |[time, long]: &[&str; 2]| -> Vec<String> {
            let value = |name: &String| match name.as_str() {
                "Kernel Name" => "attention_forward".into(),
                "Block Size" => "(128, 1, 1)".into(),
                "Grid Size" => "(16, 8, 2)".into(),
                TIME => time.to_string(),
                name if name == stalled("long_scoreboard") => long.to_string(),
                name if name == stalled("wait") => "1.50".into(),
                name if name.starts_with(STALLED.0) => "0".into(),
                _ => "24.39".into(),
            };
            names.iter().map(value).collect()
        };
        let line = |fields: &Vec<String>| format!("\"{}\"\n", fields.join("\",\""));
        let rows: String = rows.iter().map(|values| line(&row(values))).collect();
        format!("==PROF== Connected to process 7\n{}{}{rows}", line(&names), line(&units))
    }

    #[test]
    fn a_row_for_each_launch_with_its_longest_waits_first() {
        let launches = read(&table(&[["8,864", "0.85"], ["1,000", "2"]])).unwrap();
        let first = &launches[0];
        assert_eq!((first.entry.as_str(), first.grid.as_str()), ("attention_forward", "(16, 8, 2)"));
        assert_eq!((first.microseconds, first.busy), (Figure::new(8.864), Figure::new(24.39)));
        let reasons: Vec<&str> = first.stalls.iter().map(|stall| stall.reason.as_str()).collect();
        assert_eq!(reasons, ["wait", "long scoreboard"]);
        assert_eq!(launches[1].stalls[0].reason, "long scoreboard");
    }

    #[test]
    fn what_is_no_table_is_refused_by_name() {
        assert_eq!(read("==ERROR== no permission\n"), Err("ncu printed no table".into()));
        let cut = table(&[["8,864", "0.85"]]).replace(BUSY, "other");
        assert!(read(&cut).unwrap_err().contains("no column `sm__instruction_throughput"));
        let odd = table(&[["soon", "0.85"]]);
        assert!(read(&odd).unwrap_err().contains("expected a number"));
    }
}
