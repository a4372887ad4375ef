//! A sign of life: a line a minute on standard error, where no terminal shows a bar.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// Beats until it is dropped.
pub struct Heartbeat {
    /// Its end wakes the thread. Nothing on a terminal.
    _alive: Option<Sender<()>>,
}

impl Heartbeat {
    /// Says every minute how far the command is, in words that `state` finds.
    pub fn new(command: &'static str, state: impl Fn() -> String + Send + 'static) -> Heartbeat {
        if std::io::stderr().is_terminal() {
            return Heartbeat { _alive: None };
        }
        let say = move |minutes: u64| eprintln!("{command}: still running after {minutes} min{}", state());
        Heartbeat { _alive: Some(every(MINUTE, say)) }
    }
}

/// Calls `say` with the number of the beat until the sender is dropped.
fn every(interval: Duration, say: impl Fn(u64) + Send + 'static) -> Sender<()> {
    let (alive, ended) = channel();
    std::thread::spawn(move || {
        let began = Instant::now();
        for beat in 1.. {
            let due = (interval * beat).saturating_sub(began.elapsed());
            match ended.recv_timeout(due) {
                Err(RecvTimeoutError::Timeout) => say(u64::from(beat)),
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    });
    alive
}

/// Where a bar stands, as `, trials 3 of 40`.
pub fn place(what: &'static str, bar: &indicatif::ProgressBar) -> impl Fn() -> String + Send + 'static {
    let bar = bar.clone();
    move || format!(", {what} {} of {}", bar.position(), bar.length().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_beats_until_it_is_dropped() {
        let (beats, heard) = channel();
        let alive = every(Duration::from_millis(1), move |beat| beats.send(beat).unwrap_or_default());
        let limit = Duration::from_secs(60);
        assert_eq!([heard.recv_timeout(limit), heard.recv_timeout(limit)], [Ok(1), Ok(2)]);
        drop(alive);
        // The thread ends, and its sender with it.
        while let Ok(beat) = heard.recv_timeout(limit) {
            assert!(beat > 2);
        }
        assert_eq!(heard.recv_timeout(limit), Err(RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_bar_that_nobody_sees_knows_its_place() {
        let bar = indicatif::ProgressBar::hidden();
        bar.set_length(40);
        bar.inc(3);
        assert_eq!(place("trials", &bar)(), ", trials 3 of 40");
    }
}
