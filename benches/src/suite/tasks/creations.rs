//! Creation of tasks through the engine: each task is on disk before its caller gets the result.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use outlive_tasks::{
    engine::{Engine, EngineConfig},
    store::WorkerId,
};

use super::{Bench, CALLERS, LANES, Nothing, rate};
use crate::{
    bare::{Bare, Write},
    place::{KIND, ORIGIN, fresh_id, new_task, request},
    report::{Bar, Report},
    slices::Target,
};

pub(super) fn measure(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    // In PostgreSQL, creations of one principal are serialized and share one connection.
    let cases: &[(&str, usize, usize)] = match bench.is_postgres() {
        true => &[("one principal", 1, 1), ("256 principals", CALLERS, LANES)],
        false => &[("256 principals", CALLERS, 1)],
    };
    report.title(&format!("Durable creations, {CALLERS} callers"));
    for (name, principals, lanes) in cases {
        let mut targets = [control(bench, name, *lanes)?, ours(bench, name, *principals)?];
        let series = bench.take(&mut targets)?;
        let [control, ours] = &series[..] else { return Ok(()) };
        let ratio = ours.ratio(control, rate);
        report.ratio(&format!("{name}, Outlive / bare commits (tasks/s)"), ratio);
        report.series(&series);
        let share = Some(ratio.spread.median * 100.0);
        let bar = format!("creations, {name}, tasks/s relative to bare commits");
        report.bar(Bar::at_least(&bar, share, 70.0, "%"));
    }
    Ok(())
}

fn control(bench: &Bench<'_>, name: &str, lanes: usize) -> Result<Box<dyn Target>> {
    let place = bench.folder.place(&format!("bare-creations-{lanes}"));
    let bare = bench.runtime.block_on(Bare::open(&place, lanes))?;
    Ok(bench.callers(&format!("bare commits, {name}"), CALLERS, move |caller| {
        let bare = bare.clone();
        Box::pin(async move { bare.commit(caller, creation(caller, fresh_id())).await })
    }))
}

/// The row of a new task.
pub(super) fn creation(caller: usize, id: String) -> Write {
    Write::Create {
        id,
        principal: principal(caller),
        kind: KIND.to_owned(),
        origin: ORIGIN.to_owned(),
        request: request(),
    }
}

pub(super) fn principal(caller: usize) -> String {
    format!("name:caller-{caller}")
}

fn ours(bench: &Bench<'_>, name: &str, principals: usize) -> Result<Box<dyn Target>> {
    let place = bench.folder.place(&format!("creations-{principals}"));
    let engine = bench.runtime.block_on(async {
        let store = place.open().await?;
        let mut config = EngineConfig::default();
        config.max_running = 0;
        anyhow::Ok(Engine::start(&store, Arc::new(Nothing), None, WorkerId::new("bench"), config))
    })?;
    Ok(bench.callers(&format!("Outlive, {name}"), CALLERS, move |caller| {
        let engine = engine.clone();
        Box::pin(async move {
            let task = new_task(fresh_id(), principal(caller % principals));
            let made = engine.create(task).await;
            made.map_err(|refused| anyhow!("not created: {refused:?}"))?.acknowledge();
            Ok(())
        })
    }))
}
