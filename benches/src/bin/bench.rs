//! `bench`: measures, and runs the measured servers.

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<std::process::ExitCode> {
    outlive_benches::cli::run(std::env::args().skip(1))
}

#[cfg(not(target_os = "linux"))]
fn main() -> anyhow::Result<()> {
    anyhow::bail!("the benchmark reads /proc and pins cores: run it on Linux")
}
