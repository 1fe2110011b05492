//! Adds the receivers of `[notify]` to a server.

use std::path::Path;

use outlive::{
    deliveries::{Target, Webhook},
    server::ServerBuilder,
};

use super::{
    config::{NotifyConfig, Receiver},
    notify_command::NotifyCommand,
    secrets::secret,
};
use crate::error::Result;

/// Adds receivers to a server that is being built. Commands run in `base`. Messages have addresses
/// below `public_url`.
///
/// # Errors
///
/// Returns an error if the variable of a secret is not set.
pub(super) fn add_receivers(
    builder: ServerBuilder,
    receivers: &[NotifyConfig],
    base: &Path,
    public_url: Option<String>,
) -> Result<ServerBuilder> {
    let builder = match public_url {
        Some(url) => builder.public_url(url),
        None => builder,
    };
    receivers.iter().try_fold(builder, |builder, receiver| {
        let target = target(receiver, base)?
            .events(receiver.events.iter().copied())
            .links(receiver.links)
            .contents(receiver.contents)
            .format(receiver.format);
        Ok(builder.notify(match &receiver.tools {
            Some(tools) => target.tools(tools),
            None => target,
        }))
    })
}

fn target(NotifyConfig { name, receiver, .. }: &NotifyConfig, base: &Path) -> Result<Target> {
    Ok(match receiver {
        Receiver::Command(words) => Target::new(name, NotifyCommand::new(words, base)),
        Receiver::Webhook { url, secret_env, network } => {
            let webhook = Webhook::new(url).network(*network);
            let webhook = match secret_env {
                Some(variable) => webhook.secret(secret(variable, "whsec_…")?),
                None => webhook.unsigned(),
            };
            Target::new(name, webhook)
        }
    })
}
