//! Checks the store: reachable, schema version, disk or database, and a test write.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use outlive::store::{StoreError, StoreKind, StoreProbe, open, probe};
use serde_json::value::to_raw_value;

use super::{Finding, learned};
use crate::store::{rough, wall_clock, without_password};

const STORE: &str = "store";

/// Round trip above which each step of a task is slow.
const SLOW: Duration = Duration::from_millis(50);

/// Clock difference, in milliseconds, above which `doctor` warns.
const SKEW: u64 = 2_000;

/// Oldest supported major version of PostgreSQL.
const OLDEST: u32 = 14;

pub(super) async fn check(url: &str) -> Vec<Finding> {
    let place = without_password(url);
    let asked = wall_clock();
    let found = match probe(url).await {
        Ok(found) => found,
        Err(error) => return vec![unusable(&place, &error)],
    };
    let mut findings = vec![tables(&place, &found)];
    match found.product {
        StoreKind::Memory => {
            return vec![Finding::warning(
                STORE,
                "the store is in memory: tasks are lost when the server stops",
                "use sqlite:FILE or postgres://… to keep them",
            )];
        }
        StoreKind::Postgres => findings.extend(database(&found, asked)),
        _ => {
            let path = url.trim_start_matches("sqlite:").trim_start_matches("//");
            findings.extend(disk(Path::new(path)));
        }
    }
    if found.tables == Some(found.known) {
        findings.push(note(url, &place).await);
        findings.extend(learned::check(url).await);
    }
    findings
}

fn unusable(place: &str, error: &StoreError) -> Finding {
    let what = error.to_string();
    // The error's text has its remedy after the last semicolon.
    let (what, remedy) = match what.rsplit_once("; ") {
        Some((what, remedy)) => (what.to_owned(), remedy.to_owned()),
        None => (what, "choose another store with --store URL".to_owned()),
    };
    let what = if what.contains(place) { what } else { format!("{place}: {what}") };
    Finding::failure(STORE, what, remedy)
}

fn tables(place: &str, found: &StoreProbe) -> Finding {
    let StoreProbe { product, version, tables, known, .. } = found;
    let product = match product {
        StoreKind::Postgres => "PostgreSQL",
        StoreKind::Sqlite => "SQLite",
        _ => "memory",
    };
    match tables {
        None => Finding::ok(
            STORE,
            format!("{place} has no tables yet ({product} {version}); the server creates them"),
        ),
        Some(tables) if tables == known => {
            Finding::ok(STORE, format!("{place} has schema version {known} ({product} {version})"))
        }
        Some(tables) if tables < known => Finding::warning(
            STORE,
            format!("{place} has schema version {tables}, but this program uses version {known}"),
            format!(
                "stop all servers of the older version, then run: outlive store migrate {place}"
            ),
        ),
        Some(tables) => Finding::failure(
            STORE,
            format!(
                "{place} has schema version {tables}, but this program supports up to version {known}"
            ),
            "upgrade this program",
        ),
    }
}

fn database(found: &StoreProbe, asked: u64) -> Vec<Finding> {
    const CHECK: &str = "database";
    let StoreProbe { version, round_trip, .. } = found;
    let major: Option<u32> = version.split('.').next().and_then(|major| major.trim().parse().ok());
    let mut findings = Vec::new();
    if major.is_some_and(|major| major < OLDEST) {
        let what = format!("PostgreSQL {version} is not supported");
        findings.push(Finding::failure(CHECK, what, format!("use PostgreSQL {OLDEST} or newer")));
    }
    let took = format!("the database responds within {:.1} ms", round_trip.as_secs_f64() * 1e3);
    findings.push(match *round_trip > SLOW {
        true => Finding::warning(
            CHECK,
            took,
            "run the servers near the database: each step of a task waits for it",
        ),
        false => Finding::ok(CHECK, took),
    });
    // The database read its clock between `asked` and `now`.
    let now = wall_clock();
    let apart = match found.time {
        early if early < asked => asked - early,
        late => late.saturating_sub(now),
    };
    findings.push(match apart {
        0..SKEW => Finding::ok("clock", "the clocks of the database and this machine agree"),
        _ => Finding::warning(
            "clock",
            format!("the clocks of the database and this machine differ by {}", rough(apart)),
            "synchronize both clocks with NTP: leases and timers use the clock of the database",
        ),
    });
    findings
}

/// Checks that the store is on a local disk. SQLite's WAL uses shared memory, which network disks
/// lack.
#[cfg(target_os = "linux")]
fn disk(path: &Path) -> Option<Finding> {
    // File system magic numbers of the Linux kernel.
    const REMOTE: [(u64, &str); 9] = [
        (0x6969, "NFS"),
        (0x517b, "SMB"),
        (0xff53_4d42, "CIFS"),
        (0xfe53_4d42, "SMB"),
        (0x6573_5546, "FUSE"),
        (0x0102_1997, "9P"),
        (0x00c3_6400, "Ceph"),
        (0x5346_414f, "AFS"),
        (0x0bd0_0bd0, "Lustre"),
    ];
    let full = std::path::absolute(path).ok()?;
    let there = full.ancestors().find(|place| place.exists())?;
    let disk = rustix::fs::statfs(there).ok()?;
    #[expect(clippy::cast_sign_loss, reason = "a bit pattern that is signed on some platforms")]
    let kind = disk.f_type as u64 & 0xffff_ffff;
    Some(match REMOTE.iter().find(|(number, _)| *number == kind) {
        // Many FUSE file systems are local.
        Some((_, "FUSE")) => Finding::warning(
            "disk",
            "the store is on a FUSE file system",
            "move it to a local disk if that file system is on the network",
        ),
        Some((_, name)) => Finding::failure(
            "disk",
            format!("the store is on a network file system ({name}), where SQLite can corrupt it"),
            "move the file to a local disk, or use postgres://…",
        ),
        None => Finding::ok("disk", "the store is on a local disk"),
    })
}

#[cfg(not(target_os = "linux"))]
fn disk(_path: &Path) -> Option<Finding> {
    None
}

/// Writes, reads and deletes a test value.
async fn note(url: &str, place: &str) -> Finding {
    let began = Instant::now();
    let kept = async {
        let store = open(url).await?;
        let key = format!("doctor/{}-{}", std::process::id(), wall_clock());
        let note =
            to_raw_value(&key).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        store.put(&key, note.clone(), Duration::from_secs(60), None).await?;
        let back = store.get_value(&key).await?;
        store.delete(&key).await?;
        Ok::<_, StoreError>(back.is_some_and(|back| back.get() == note.get()))
    };
    match kept.await {
        Ok(true) => {
            let took = began.elapsed().as_secs_f64() * 1e3;
            Finding::ok(
                STORE,
                format!(
                    "a test value was written and read ({took:.0} ms, including opening the store)"
                ),
            )
        }
        Ok(false) => Finding::failure(
            STORE,
            format!("{place} did not return the test value"),
            "check the disk, and that no other program writes to the store",
        ),
        Err(error) => unusable(place, &error),
    }
}
