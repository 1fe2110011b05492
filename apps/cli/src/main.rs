//! Entry point of the program `outlive`. The code is in the library of this package.

fn main() -> std::process::ExitCode {
    outlive_cli::main()
}
