# `cargo xtask release --dry-run --only homebrew` replaces the words between at signs.
class Outlive < Formula
  desc "Serves commands as MCP tools that survive restarts"
  homepage "https://github.com/outlive/outlive"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "https://github.com/outlive/outlive/releases/download/v#{version}/outlive-#{version}-aarch64-macos.tar.gz"
      sha256 "@SHA256-aarch64-macos@"
    end
    on_intel do
      url "https://github.com/outlive/outlive/releases/download/v#{version}/outlive-#{version}-x86_64-macos.tar.gz"
      sha256 "@SHA256-x86_64-macos@"
    end
  end

  on_linux do
    on_arm do
      url "https://github.com/outlive/outlive/releases/download/v#{version}/outlive-#{version}-aarch64-linux.tar.gz"
      sha256 "@SHA256-aarch64-linux@"
    end
    on_intel do
      url "https://github.com/outlive/outlive/releases/download/v#{version}/outlive-#{version}-x86_64-linux.tar.gz"
      sha256 "@SHA256-x86_64-linux@"
    end
  end

  def install
    bin.install "outlive"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/outlive.bash" => "outlive"
    zsh_completion.install "completions/_outlive"
    fish_completion.install "completions/outlive.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/outlive --version")
  end
end
