//! `[gateway]`: settings of all upstreams together.

use outlive_gateway::{CallAudit, Discovery, GatewaySettings};

use super::{
    asked::Asked,
    reader::{Result, Section},
    units::Span,
};

/// Reads `[gateway]`. Returns the line of the section, if the file has one.
pub(super) fn gateway(
    section: Option<Section<'_>>,
    asked: &mut Asked,
) -> Result<(GatewaySettings, Option<usize>)> {
    let line = section.as_ref().map(|section| section.line);
    let mut section = section.unwrap_or_else(Section::empty);
    let mut settings = GatewaySettings::new();
    let words = [("list", Discovery::List), ("search", Discovery::Search)];
    if let Some(discovery) = section.choice("discovery", &words) {
        settings = settings.discovery(discovery.value);
    }
    if let Some(results) = section.read::<u32>("search_results")? {
        settings = settings.search_results(results as usize);
    }
    if let Some(Span(wait)) = section.read("list_wait")? {
        settings = settings.list_wait(wait);
    }
    if let Some(processes) = section.read::<u32>("max_processes")? {
        settings = settings.max_processes(processes as usize);
    }
    if let Some(report) = section.read("report_problems")? {
        settings = settings.report_problems(report);
    }
    let words = [("off", CallAudit::Off), ("store", CallAudit::Store)];
    if let Some(audit) = section.choice("audit", &words) {
        settings = settings.audit(audit.value);
    }
    asked.note("gateway", section.finish()?);
    Ok((settings, line))
}
