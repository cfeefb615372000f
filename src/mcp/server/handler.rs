//! The methods of the protocol, for one client.
#![allow(deprecated, reason = "the protocol has log messages still")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, Implementation, InitializeResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, SetLevelRequestParams,
    SubscriptionFilter,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler};
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::call::{RunningCall, answer, cancelled, may_be_structured};
use super::host::{Client, ClientTools, ServerIdentity, ToolHost};
use super::listing::{Listing, ListingCache};
use super::log::SessionLevel;
use super::question::SuspendedCalls;
use super::requests::PendingRequest;

/// Time between two looks at the revision of the host.
const WATCH_INTERVAL: Duration = Duration::from_millis(200);

/// The most calls that run at a time.
const MOST_CALLS: usize = 10_000;

/// The methods that the server has.
const METHODS: [&str; 7] =
    ["initialize", "logging/setLevel", "ping", "server/discover", "subscriptions/listen", "tools/call", "tools/list"];

/// The state that all clients of a server share.
pub(super) struct ServerState {
    pub(super) host: Arc<dyn ToolHost>,
    info: ServerConfig,
    /// The list for clients that have switched nothing.
    listing: ListingCache,
    pub(super) suspended: Arc<SuspendedCalls>,
    /// The places of calls that run, and of subscriptions.
    places: Semaphore,
    /// Cancelled when the server ends.
    shutdown: CancellationToken,
    revision: watch::Receiver<u64>,
    _shutdown_guard: DropGuard,
}

impl ServerState {
    /// Makes the state, and starts the task that watches the host. It ends with the server.
    pub(super) fn start(host: Arc<dyn ToolHost>) -> Arc<Self> {
        let shutdown = CancellationToken::new();
        let (sender, revision) = watch::channel(host.revision());
        tokio::spawn(watch_revision(host.clone(), sender, shutdown.clone()));
        Arc::new(Self {
            info: info(host.identity()),
            host,
            listing: ListingCache::default(),
            suspended: Arc::default(),
            places: Semaphore::new(MOST_CALLS),
            _shutdown_guard: shutdown.clone().drop_guard(),
            shutdown,
            revision,
        })
    }

    /// Takes the place of a call or a subscription.
    fn place(&self) -> Result<SemaphorePermit<'_>, ErrorData> {
        let busy = |_| ErrorData::internal_error(format!("busy: {MOST_CALLS} calls run at this time"), None);
        self.places.try_acquire().map_err(busy)
    }

    /// A token for the end of a client, which the end of the server is, too.
    pub(super) fn client_token(&self) -> CancellationToken {
        self.shutdown.child_token()
    }

    /// Cancels all calls.
    pub(super) fn shut_down(&self) {
        self.shutdown.cancel();
        self.suspended.clear();
    }
}

async fn watch_revision(host: Arc<dyn ToolHost>, sender: watch::Sender<u64>, shutdown: CancellationToken) {
    let mut ticks = tokio::time::interval(WATCH_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = ticks.tick() => {
                let now = host.revision();
                sender.send_if_modified(|revision| std::mem::replace(revision, now) != now);
            }
        }
    }
}

fn info(identity: ServerIdentity) -> ServerConfig {
    let capabilities = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_logging().build();
    let mut server = Implementation::new(identity.name, identity.version);
    server.title = identity.title;
    let mut info = InitializeResult::new(capabilities)
        .with_server_info(server)
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
    info.instructions = identity.instructions;
    info
}

/// The handler for one client, or for one request of a client without a session.
pub(super) struct Handler {
    server: Arc<ServerState>,
    /// The session of the client, begun with its first request.
    tools: OnceLock<Arc<dyn ClientTools>>,
    /// The list of a client that has switched groups.
    listing: ListingCache,
    /// The least level of log messages that it wants.
    level: SessionLevel,
    /// Set with the first introduction of the client: it is notified of changes once, however often it introduces itself.
    is_notified: AtomicBool,
    /// Cancelled when the client is gone.
    gone: CancellationToken,
    _gone_guard: DropGuard,
}

impl Handler {
    pub(super) fn new(server: Arc<ServerState>) -> Self {
        let gone = server.client_token();
        let guard = gone.clone().drop_guard();
        Self {
            server,
            tools: OnceLock::new(),
            listing: ListingCache::default(),
            level: SessionLevel::default(),
            is_notified: AtomicBool::new(false),
            gone,
            _gone_guard: guard,
        }
    }

    fn tools(&self, context: &RequestContext<RoleServer>) -> &Arc<dyn ClientTools> {
        self.tools.get_or_init(|| {
            let introduced = context.client_info();
            let (name, version) = introduced.map(|client| (client.name, client.version)).unzip();
            self.server.host.open(&Client { name, version })
        })
    }

    async fn listing(&self, tools: &dyn ClientTools) -> Arc<Listing> {
        let revisions = (self.server.host.revision(), tools.switches());
        let cache = if revisions.1 == 0 { &self.server.listing } else { &self.listing };
        cache.get(revisions, tools).await
    }

    /// Runs a call whose turn it is.
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
        gone: CancellationToken,
    ) -> Result<CallToolResponse, ErrorData> {
        let tools = self.tools(&context).clone();
        let switches = tools.switches();
        let (tool, arguments) = (request.name.into_owned(), request.arguments.unwrap_or_default());
        let running = match request.request_state {
            None => RunningCall::start(&*tools, tool.clone(), arguments, &context, &self.level),
            Some(state) => self
                .server
                .suspended
                .resume(&state, (&tool, &arguments), request.input_responses)
                .ok_or_else(|| ErrorData::invalid_params("unknown or expired `requestState`", None))?,
        };
        let outcome = running.advance(&context, &gone).await;
        let listing = if may_be_structured(&outcome) { Some(self.listing(&*tools).await) } else { None };
        if tools.switches() != switches {
            // A client that is gone is not interested any more.
            let _ = context.peer.notify_tool_list_changed().await;
        }
        answer(outcome, &tool, listing.as_deref(), &self.server)
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        self.server.info.clone()
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let listing = self.listing(&**self.tools(&context)).await;
        Ok(ListToolsResult::with_all_items(listing.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _place = self.server.place()?;
        // A request without a session has none, and is cancelled with its connection.
        let pending = context.extensions.get::<PendingRequest>();
        let gone = pending.map_or(&self.gone, PendingRequest::gone).clone();
        if let Some(pending) = pending {
            tokio::select! {
                () = pending.turn() => {}
                () = context.ct.cancelled() => return Err(cancelled()),
                () = gone.cancelled() => return Err(cancelled()),
            }
        }
        // In a box, because thousands of calls may wait for their turn.
        Box::pin(self.call(request, context, gone)).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.level.set(request.level);
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // A request whose parameters do not fit its method is read as one of an unknown method.
        if METHODS.contains(&request.method.as_str()) {
            return Err(ErrorData::invalid_params(format!("invalid params of `{}`", request.method), None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if !self.is_notified.swap(true, Ordering::Relaxed) {
            tokio::spawn(notify_changes(context.peer, self.server.revision.clone(), self.gone.clone()));
        }
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = SubscriptionFilter::default();
        accepted.tools_list_changed = requested.tools_list_changed;
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let _place = self.server.place()?;
        let mut revision = self.server.revision.clone();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.gone.cancelled() => return Ok(()),
                changed = revision.changed() => {
                    if changed.is_err() || context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Notifies a client of changes for all clients until it is gone.
async fn notify_changes(peer: Peer<RoleServer>, mut revision: watch::Receiver<u64>, gone: CancellationToken) {
    revision.mark_unchanged();
    loop {
        tokio::select! {
            () = gone.cancelled() => return,
            changed = revision.changed() => {
                if changed.is_err() || peer.notify_tool_list_changed().await.is_err() {
                    return;
                }
            }
        }
    }
}
