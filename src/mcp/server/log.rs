//! Log messages of tools as notifications to the client, at the level that it asked for.
//!
//! Clients up to 2025-11-25 set a level for their session; later ones set it in each request, and get nothing without it. The
//! newest version of the protocol calls this deprecated, and still has it.
#![allow(deprecated, reason = "the protocol has log messages still")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::RoleServer;
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, ProtocolVersion};
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::native::{LogLevel, Logger};

/// The most messages of a call that wait to be sent; later ones are dropped.
const MOST_WAITING: usize = 256;

/// The level that a client has set for its session.
#[derive(Clone)]
pub(super) struct SessionLevel(Arc<AtomicUsize>);

impl Default for SessionLevel {
    /// The level before the client has set one.
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(position(LogLevel::Info))))
    }
}

impl SessionLevel {
    pub(super) fn set(&self, level: LoggingLevel) {
        self.0.store(position(of_protocol(level)), Ordering::Relaxed);
    }

    fn admits(&self, level: LogLevel) -> bool {
        position(level) >= self.0.load(Ordering::Relaxed)
    }
}

fn position(level: LogLevel) -> usize {
    level as usize
}

fn of_protocol(level: LoggingLevel) -> LogLevel {
    match level {
        LoggingLevel::Debug => LogLevel::Debug,
        LoggingLevel::Info => LogLevel::Info,
        LoggingLevel::Notice => LogLevel::Notice,
        LoggingLevel::Warning => LogLevel::Warning,
        LoggingLevel::Error => LogLevel::Error,
        LoggingLevel::Critical => LogLevel::Critical,
        LoggingLevel::Alert => LogLevel::Alert,
        LoggingLevel::Emergency => LogLevel::Emergency,
    }
}

fn to_protocol(level: LogLevel) -> LoggingLevel {
    match level {
        LogLevel::Debug => LoggingLevel::Debug,
        LogLevel::Info => LoggingLevel::Info,
        LogLevel::Notice => LoggingLevel::Notice,
        LogLevel::Warning => LoggingLevel::Warning,
        LogLevel::Error => LoggingLevel::Error,
        LogLevel::Critical => LoggingLevel::Critical,
        LogLevel::Alert => LoggingLevel::Alert,
        LogLevel::Emergency => LoggingLevel::Emergency,
    }
}

/// The messages of a call on their way to the client.
pub(super) type Messages = mpsc::Receiver<(LogLevel, String)>;

/// A logger whose messages arrive at the receiver; none if the client takes no messages.
pub(super) fn logger(context: &RequestContext<RoleServer>, session: &SessionLevel) -> Option<(Logger, Messages)> {
    let is_modern = context.protocol_version() >= Some(ProtocolVersion::V_2026_07_28);
    let is_wanted: Box<dyn Fn(LogLevel) -> bool + Send + Sync> = if is_modern {
        let least = of_protocol(context.meta.log_level()?);
        Box::new(move |level| level >= least)
    } else {
        let session = session.clone();
        Box::new(move |level| session.admits(level))
    };
    let (sender, messages) = mpsc::channel(MOST_WAITING);
    let logger = Logger::filtered(is_wanted, move |level, text| {
        // A tool that logs faster than its client reads must not wait for it.
        let _ = sender.try_send((level, text));
    });
    Some((logger, messages))
}

/// Sends a message to the client.
pub(super) async fn notify(context: &RequestContext<RoleServer>, tool: &str, (level, text): (LogLevel, String)) {
    let message = LoggingMessageNotificationParam::new(to_protocol(level), Value::String(text)).with_logger(tool);
    // A client that is gone is noticed by the cancellation of its requests.
    let _ = context.peer.notify_logging_message(message).await;
}
