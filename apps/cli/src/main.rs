//! The program `outlive`; what it does stands in the library beside it.

fn main() -> std::process::ExitCode {
    outlive_cli::main()
}
