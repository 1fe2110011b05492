//! Upstreams of the command line: `outlive serve --upstream [NAME=]TARGET`.

use super::config::{
    CommandTarget, Config, Reference, UpstreamConfig, UpstreamTarget, UrlTarget, is_upstream_name,
};
use crate::{
    call::server::split,
    error::{CliError, Result},
};

/// Name of an upstream without one. Its tools keep their names.
const ONLY: &str = "upstream";

/// Adds the upstreams of the command line to those of the file.
pub(super) fn add(config: &mut Config, written: &[String]) -> Result<()> {
    let others = config.upstreams.len() + written.len().saturating_sub(1);
    for text in written {
        let (name, target) = parts(text);
        let mut upstream = UpstreamConfig::new(name.unwrap_or(ONLY).to_owned(), read(target)?);
        if name.is_none() {
            if others > 0 {
                let what =
                    format!("--upstream {target} has no name, and it is not the only upstream");
                return Err(CliError::usage(what)
                    .remedy("write --upstream NAME=TARGET; its tools are then NAME__tool"));
            }
            upstream.prefix = Some(String::new());
        }
        if config.upstreams.iter().any(|known| known.name == upstream.name) {
            let what = format!("there are two upstreams with the name `{}`", upstream.name);
            return Err(CliError::usage(what).remedy("choose another name for --upstream"));
        }
        config.upstreams.push(upstream);
    }
    Ok(())
}

/// Splits `NAME=TARGET`. A command line may contain `=`, but not after a valid name.
fn parts(text: &str) -> (Option<&str>, &str) {
    match text.split_once('=') {
        Some((name, target)) if is_upstream_name(name) => (Some(name), target),
        _ => (None, text),
    }
}

fn read(target: &str) -> Result<UpstreamTarget> {
    if target.starts_with("https://") || target.starts_with("http://") {
        let target = UrlTarget::new(Reference::Text(target.to_owned()));
        let checked = target.checked();
        return checked.map(|target| UpstreamTarget::Url(Box::new(target))).map_err(|reason| {
            CliError::usage(format_args!("--upstream: {reason}")).remedy("write https://…")
        });
    }
    let words = split(target).filter(|words| !words.is_empty()).ok_or_else(|| {
        CliError::usage(format_args!(
            "--upstream {target}: the command is empty or has an unclosed quote"
        ))
        .remedy("write --upstream 'PROGRAM ARGUMENTS' or --upstream https://…/mcp")
    })?;
    Ok(UpstreamTarget::Command(CommandTarget { words, ..CommandTarget::default() }))
}

#[cfg(test)]
mod tests {
    use super::{super::config, add, parts};

    #[test]
    fn name_before_target_is_recognized() {
        for (text, name, target) in [
            ("npx -y server", None, "npx -y server"),
            ("files=npx -y server", Some("files"), "npx -y server"),
            ("a=https://a/mcp?x=1", Some("a"), "https://a/mcp?x=1"),
            ("https://a/mcp?x=1", None, "https://a/mcp?x=1"),
            ("KEY=1 server", None, "KEY=1 server"),
            ("./server --mode=fast", None, "./server --mode=fast"),
        ] {
            assert_eq!(parts(text), (name, target), "{text}");
        }
    }

    #[track_caller]
    fn names(written: &[&str]) -> Result<Vec<(String, String)>, String> {
        let mut config = config::demo();
        let written: Vec<String> = written.iter().map(|text| (*text).to_owned()).collect();
        add(&mut config, &written).map_err(|error| error.to_string())?;
        let shown = |upstream: &config::UpstreamConfig| {
            (upstream.name.clone(), upstream.shown_prefix().to_owned())
        };
        Ok(config.upstreams.iter().map(shown).collect())
    }

    #[test]
    fn only_upstream_without_name_keeps_names_of_its_tools() {
        assert_eq!(names(&["server"]), Ok(vec![("upstream".to_owned(), String::new())]));
        let two = names(&["a=one", "b=two"]).unwrap();
        assert_eq!(two[1], ("b".to_owned(), "b".to_owned()));
    }

    #[test]
    fn upstream_that_cannot_be_named_or_reached_is_rejected() {
        for (written, says) in [
            (&["one", "b=two"][..], "has no name"),
            (&["a=one", "a=two"], "two upstreams with the name `a`"),
            (&["'open"], "unclosed quote"),
            (&["http://example.com/mcp"], "clear text"),
        ] {
            let error = names(written).unwrap_err();
            assert!(error.contains(says), "{says}: {error}");
        }
    }
}
