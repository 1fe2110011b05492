//! Names that a supervisor, its program and its command share.

/// First argument of a program that runs as a supervisor. The second is the folder of the job.
pub const SUPERVISE: &str = "__supervise";

/// Environment variable with a value that is unique to each job.
pub const JOB_VARIABLE: &str = "OUTLIVE_JOB";
