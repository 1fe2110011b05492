//! A gateway that is frozen during a call, and thaws when another one has taken over.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::site::{Site, home};
use super::{python, task};
use crate::gateway::serving::{ADA, MARKED, signal};
use crate::gateway::setting::Setting;
use crate::hosts::caller::Caller;
use crate::row::Row;

/// Time in which a thawed gateway would write.
const THAWED: Duration = Duration::from_secs(3);

pub(super) fn run(setting: &Setting) -> Result<Vec<Row>> {
    let count = setting.choose(10, 1);
    let command = python::command(setting)?;
    let file = format!(
        "[upstreams.studio]\ncommand = {command}\n{MARKED}\nprotocol_version = \"2025-06-18\"\ntask_after = \"300ms\"\n"
    );
    let home = home(setting, "frozen", &file)?;
    let mut site = Site::start(&home)?;
    let caller = Caller::with_tasks(site.gateway()?.address, Some(ADA));
    let (mut results, mut writes, mut wrong) = (0, 0, None);
    for number in 0..count {
        let key = format!("frozen-{number}");
        let arguments = json!({"key": key, "steps": 20});
        let id = task::create(&site.at(&caller)?, "studio__render", arguments)?;
        signal("STOP", site.gateway()?.id())?;
        let frozen = site.succeed()?;
        let end = task::until(&site, &caller, &id, task::has_ended)?;
        signal("CONT", frozen.id())?;
        thread::sleep(THAWED);
        let later = task::get(&site.at(&caller)?, &id)?;
        let executions = site.executions.count()?.get(&key).copied().unwrap_or(0);
        let is_right = task::outcome(&end) == format!("rendered {key}") && executions == 1;
        results += usize::from(is_right);
        writes += usize::from(later != end);
        if !is_right || later != end {
            wrong.get_or_insert(format!("{end}, later {later}, {executions} executions"));
        }
        frozen.kill()?;
    }
    site.stop()?;
    let left = home.wait_for_no_processes(Duration::from_secs(10))?.len();
    let mut figure = format!(
        "{count} frozen gateways: {results} results with 1 execution, {writes} tasks changed after the thaw, {left} processes left"
    );
    wrong.iter().for_each(|wrong| figure.push_str(&format!("; first: {wrong}")));
    let is_met = results == count && writes == 0 && left == 0;
    let bar = format!("{count} results, 0 changed, 0 left");
    Ok(vec![Row::new("SIGSTOP of the old gateway", figure, bar, is_met)])
}
