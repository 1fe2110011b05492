//! Names that a supervisor, its program and its command agree on.

/// First argument of a program that is to run as a supervisor; the second is the folder of the job.
pub const SUPERVISE: &str = "__supervise";

/// Environment variable that names the job of a command. Its value is different for every job.
pub const JOB_VARIABLE: &str = "OUTLIVE_JOB";
