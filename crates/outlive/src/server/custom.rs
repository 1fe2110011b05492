//! The low-level door: methods and notifications of the application's own, or its own way of
//! answering those of the specification.

use std::{future::ready, sync::Arc};

use outlive_protocol::{
    Call, CallFuture, ClientNotification, MethodResult, Outcome, ProtocolError,
};

use super::{
    Cx, core::Core, cx::Arguments, extract::RejectionKind, handler::Handler, output::IntoRawResult,
};

/// A method of the application's own.
pub(super) type CustomMethod = Box<dyn Fn(&Arc<Core>, Arc<Call>) -> CallFuture + Send + Sync>;

/// What the application does when a notification comes.
pub(super) type NoticeHandler = Box<dyn Fn(&ClientNotification<'_>) + Send + Sync>;

pub(super) fn method<M, H>(handler: H) -> CustomMethod
where
    H: Handler<M>,
    H::Output: IntoRawResult,
{
    Box::new(move |core, call| {
        let cx = Cx::new(call, Arc::clone(core), Arguments::Params);
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
