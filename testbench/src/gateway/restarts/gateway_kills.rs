//! Kills of the gateway: no process of its upstreams may outlive it for long.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::kills::{file, names};
use super::left::running;
use super::load::Load;
use crate::crash::random::Random;
use crate::gateway::serving::Home;
use crate::gateway::setting::Setting;
use crate::row::Row;

/// Time after which a process without a gateway is an orphan.
const ORPHANED: Duration = Duration::from_secs(10);

pub(super) fn run(setting: &Setting) -> Result<Vec<Row>> {
    let target = setting.choose(100, 4);
    let program = setting.program_beside("hostile-upstream")?;
    let names = names(2);
    let home = Home::new(setting, "gateway-kills", &file(&program, &names))?;
    let mut random = Random::new(setting.seed);
    let mut started = 0;
    for _ in 0..target {
        let gateway = home.start()?;
        Load::new(gateway.address, &names)?.warm_up()?;
        started += running(&program, &home.processes()?).len();
        thread::sleep(random.millis(1..100));
        gateway.kill()?;
    }
    let orphans = home.wait_for_no_processes(ORPHANED)?.len();
    let figure = format!(
        "{target} kills with {started} upstream processes in all: {orphans} left after {} s",
        ORPHANED.as_secs()
    );
    let is_met = orphans == 0 && started >= target;
    Ok(vec![Row::new("kill -9 of the gateway", figure, "0 orphans", is_met)])
}
