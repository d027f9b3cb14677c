class Anteroom < Formula
  desc "Virtual waiting room in front of a web application"
  homepage "https://github.com/anteroom/anteroom"
  version "{{.Version}}"
  license "Apache-2.0"
{{range $os, $arches := .Archives}}
  on_{{if eq $os "darwin"}}macos{{else}}{{$os}}{{end}} do
{{- range $arches}}
    on_{{if eq .Arch "amd64"}}intel{{else}}arm{{end}} do
      url "https://github.com/anteroom/anteroom/releases/download/v{{$.Version}}/{{.File}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
  end
{{end}}
  def install
    bin.install "anteroom"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/anteroom.bash" => "anteroom"
    zsh_completion.install "completions/_anteroom"
    fish_completion.install "completions/anteroom.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/anteroom --version")
  end
end
