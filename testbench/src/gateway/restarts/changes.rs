//! Changes of the file under load: policy, upstreams, connections, and mistakes.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::kills::{file, names};
use super::load::Load;
use crate::crash::random::Random;
use crate::gateway::serving::{Home, MARKED};
use crate::gateway::setting::Setting;
use crate::row::Row;

/// Time within which the gateway checks the file, and some more.
const LOOK: Duration = Duration::from_millis(1_500);

pub(super) fn run(setting: &Setting) -> Result<Vec<Row>> {
    let target = setting.choose(1_000, 12);
    let program = setting.program_beside("hostile-upstream")?;
    let names = names(3);
    let home = Home::new(setting, "changes", &file(&program, &names))?;
    let mut gateway = home.start()?;
    let load = Load::new(gateway.address, &names)?;
    load.warm_up()?;
    let mut random = Random::new(setting.seed);
    let ((), calls) = load.during(|| {
        for number in 0..target {
            home.write(&changed(&program, &names, number))?;
            // A mistake stays until the gateway has checked it.
            let is_mistake = number % KINDS == MISTAKE;
            thread::sleep(if is_mistake { LOOK } else { random.millis(150..350) });
        }
        thread::sleep(LOOK);
        Ok(())
    })?;
    gateway.check()?;
    gateway.stop()?;
    let log = fs::read_to_string(home.path("server.log"))?;
    let (reloads, refused) = (
        log.matches("reloaded ").count(),
        log.matches("tools and upstreams are unchanged").count(),
    );
    let mut wrong = calls.wrong;
    wrong.extend((calls.named > 0).then(|| format!("{} calls failed", calls.named)));
    let mut figure = format!(
        "{target} changes, {reloads} reloads and {refused} refused files: {} results, {} failed calls",
        calls.results,
        wrong.len()
    );
    wrong.first().into_iter().for_each(|first| figure.push_str(&format!("; first: {first}")));
    let is_met = wrong.is_empty() && calls.results > 0 && reloads > 0 && refused > 0;
    let bar = "0 failed calls, 0 lost sessions";
    Ok(vec![Row::new("changes of the file under load", figure, bar, is_met)])
}

/// Kinds of changes, and the last of them.
const KINDS: usize = 5;
const MISTAKE: usize = KINDS - 1;

/// Returns the file after a change. The upstreams of the load stay in it.
fn changed(program: &Path, names: &[String], number: usize) -> String {
    let all = file(program, names);
    let program = program.display();
    match number % KINDS {
        // Policy.
        0 => all.replace(MARKED, &format!("{MARKED}\ntimeout = \"{}s\"", 30 + number % 100)),
        // Connections: a new process takes the next calls.
        1 => all.replace(MARKED, &format!("{MARKED}\nenv.NUMBER = \"{number}\"")),
        // Another upstream.
        2 => {
            let other = format!("[upstreams.other-{number}]\ncommand = [\"{program}\", \"x\"]\n");
            format!("{all}{other}")
        }
        3 => format!("[gateway]\nsearch_results = {}\n{all}", 1 + number % 9),
        // A mistake.
        _ => format!("{all}[upstreams.broken]\nprefix = \"{number}\"\n"),
    }
}
