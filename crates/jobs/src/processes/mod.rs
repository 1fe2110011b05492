//! Processes of a command: how they are found and terminated.
//!
//! The processes of a command are its process group. On Linux, they also include all descendants of
//! the supervisor, which adopts orphans. If the supervisor is gone, they include all processes with
//! the job's mark in their environment. A process in a separate session is therefore found too.

mod family;
mod kin;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(not(target_os = "linux"))]
use other as system;

pub(super) use family::{
    Family, GIVE_UP_AFTER, LEFT, LOOK_EVERY, end_left_behind, ending, identity, later,
};
pub(super) use system::{become_reaper, reap_adopted};
