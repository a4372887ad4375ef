//! `peers/lock.toml`: the peers that speed is told against, fixed before anything is measured.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::point::{CANDIDATES, Point};
use crate::guard::{Guard, Objection};

/// The names of those that can be measured, in the order in which they are told.
pub const PEERS: [&str; 4] = ["fa2", "cudnn", "fa4", "triton"];

const LOCK: &str = include_str!("../../../../peers/lock.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lock {
    peer: BTreeMap<String, Pinned>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pinned {
    /// What the peer's process says of itself.
    says: String,
    #[allow(dead_code, reason = "for people, and for the test that reads it")]
    packages: Vec<Package>,
}

/// What to install.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "for people, and for the test that reads it")]
struct Package {
    name: String,
    version: String,
    sha256: String,
}

/// The file is part of this program, and a test reads it.
fn lock() -> Lock {
    toml::from_str(LOCK).unwrap_or(Lock { peer: BTreeMap::new() })
}

/// A point lacks a peer of the list, or has another by its name.
pub fn objections(point: &Point) -> Vec<Objection> {
    let lock = lock();
    let of_peer = |(name, pinned): (&String, &Pinned)| {
        let peers = point.contenders.iter().skip(CANDIDATES);
        let why = match peers.into_iter().find(|peer| peer.name == *name) {
            None => format!("{name} was not measured"),
            Some(peer) if peer.identity != pinned.says => format!("{name} is `{}`", peer.identity),
            Some(_) => return None,
        };
        let why = format!("{}: {why}: peers/lock.toml names `{}`", point.problem, pinned.says);
        Some(Objection::ambiguous(Guard::Pinned, why))
    };
    lock.peer.iter().filter_map(of_peer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tests::point;

    #[test]
    fn every_package_has_its_version_and_its_hash() {
        let lock = lock();
        assert_eq!(lock.peer.keys().collect::<Vec<_>>(), ["cudnn", "fa2", "fa4", "triton"]);
        assert!(lock.peer.keys().all(|name| PEERS.contains(&name.as_str())) && lock.peer.len() == PEERS.len());
        for package in lock.peer.values().flat_map(|peer| &peer.packages) {
            let hash = package.sha256.len() == 64 && package.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(hash && package.version.starts_with(|c: char| c.is_ascii_digit()), "{}", package.name);
        }
    }

    #[test]
    fn a_peer_that_is_left_out_or_of_another_version_decides_nothing() {
        let mut all = point(&[10.0, 10.0, 12.0, 12.0, 12.0, 12.0]);
        for (contender, (name, pinned)) in all.contenders.iter_mut().skip(CANDIDATES).zip(lock().peer) {
            (contender.name, contender.identity) = (name, pinned.says);
        }
        assert_eq!(objections(&all), []);
        let mut other = all.clone();
        other.contenders[2].identity = "torch 1.0".into();
        assert!(objections(&other)[0].state.why().unwrap().contains("cudnn is `torch 1.0`"));
        all.contenders.pop();
        assert!(objections(&all)[0].state.why().unwrap().contains("triton was not measured"));
    }
}
