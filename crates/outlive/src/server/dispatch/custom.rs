//! Methods and notifications that the application handles itself, custom ones or those of the
//! specification.

use std::{future::ready, sync::Arc};

use outlive_protocol::{
    Call, CallFuture, ClientNotification, MethodResult, Outcome, ProtocolError,
};

use crate::server::{
    env::environment::Env,
    extract::{
        cx::{Arguments, Cx},
        extractor::RejectionKind,
        handler::Handler,
        response::IntoRawResult,
    },
};

/// A method that the application handles.
pub(crate) type CustomMethod = Box<dyn Fn(&Arc<Env>, Arc<Call>) -> CallFuture + Send + Sync>;

/// The application's handler for a notification.
pub(crate) type NotificationHandler = Box<dyn Fn(&ClientNotification<'_>) + Send + Sync>;

pub(crate) fn method<M, H>(handler: H) -> CustomMethod
where
    H: Handler<M>,
    H::Output: IntoRawResult,
{
    Box::new(move |env, call| {
        let cx = Cx::plain(call, env, Arguments::Params);
        match handler.start(&cx) {
            Ok(future) => Box::pin(async move {
                match future.await.into_raw_result() {
                    Ok(raw) => Ok(Outcome::Complete(MethodResult::Raw(raw))),
                    Err(error) => {
                        Err(error.into_fault(|| ProtocolError::invalid_params("not found")))
                    }
                }
            }),
            Err(rejection) => Box::pin(ready(Err(match rejection.0 {
                RejectionKind::Refused(fault) => fault,
                RejectionKind::Arguments(error) => {
                    ProtocolError::invalid_params(format!("`params`: {error}"))
                }
            }))),
        }
    })
}
