//! The processes of a command: which they are, and how they are ended.
//!
//! A command's processes are its process group. On Linux they are also all that descend from the supervisor, which
//! adopts those whose parents are gone, and, where the supervisor itself is gone, all that have the job's mark in
//! their environment. So one that has made itself a session of its own is found there as well.

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
