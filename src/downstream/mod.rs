//! HTTP in: whom a request belongs to, which route it takes, its body within bounds, and the bridge's reply out.
//!
//! One function, `Edge::answer`, sees every request; there is no middleware. It refuses what comes from web pages
//! (`origin`), finds the route (`routes`), the tenant (`auth`) and the body (`bodies`), and hands the rest to a
//! [`Bridge`]. Requirements: `spec/downstream.md`.

mod auth;
mod bodies;
mod create;
mod health;
mod ids;
mod lookup;
mod operators;
mod origin;
mod pass;
mod reply;
mod routes;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use futures_util::FutureExt;
use http::header::ALLOW;
use http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};

use crate::admin::Admin;
use crate::admin::attempts::Attempts;
use crate::admin::ui::Ui;
use crate::bridge::key;
use crate::config;
use crate::event::{self, Event, Events};
use crate::refusal::{Kind, Refusal};
use crate::runtime::call::{Bridge, Caller, Reply, Tenant};
use crate::runtime::{self, budget::Budget};

use auth::{AdminToken, Tenants};
use bodies::Bodies;
use ids::CallIds;
use origin::Origins;
use routes::{Api, Methods, Route};

/// A body from which no byte came for so long is not coming; well above any uplink's hiccup.
const DEFAULT_BODY_STALL: Duration = Duration::from_secs(30);

/// What the edge is told; the rest of the configuration does not concern it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Clients with keys of their own; empty: callers are told apart by their credentials.
    pub clients: Vec<config::Client>,
    /// Guards `/metrics` beyond loopback.
    pub admin_token: Option<secrecy::SecretString>,
    /// The operators have a listener of their own: clients' listeners show no metrics.
    pub admin_elsewhere: bool,
    /// Browser origins that may call, `scheme://host[:port]` in lower case.
    pub allow_origins: Vec<String>,
    /// Bytes of one body, after decoding.
    pub max_body: usize,
    /// How long a body may stand still.
    pub body_stall: Duration,
    /// Spans are exported: a request without a trace begins one.
    pub traced: bool,
}

impl Settings {
    /// The slices of the configuration that the edge reads.
    pub fn of(server: &config::Server, clients: &[config::Client]) -> Self {
        Settings {
            clients: clients.to_vec(),
            admin_token: server.admin_token.clone(),
            admin_elsewhere: server.admin_listen.is_some(),
            allow_origins: server.allow_origins.clone(),
            max_body: server.max_body,
            body_stall: DEFAULT_BODY_STALL,
            traced: false,
        }
    }
}

/// The downstream edge of the bridge. Cloning shares it.
pub struct Edge<B>(Arc<Shared<B>>);

struct Shared<B> {
    bridge: Arc<B>,
    rules: ArcSwap<Rules>,
    install_key: [u8; 32],
    body_stall: Duration,
    budget: Budget,
    admin_elsewhere: bool,
    attempts: Attempts,
    operators: Option<Arc<Admin>>,
    page: Option<Arc<Ui>>,
    events: Events,
    traced: bool,
}

/// By what requests are judged. A request keeps the rules of its arrival, whatever is put in force while it runs (REL-16).
struct Rules {
    tenants: Tenants,
    admin: AdminToken,
    origins: Origins,
    bodies: Bodies,
}

impl Rules {
    fn of(settings: &Settings, install_key: &[u8; 32], budget: Budget) -> Rules {
        Rules {
            tenants: Tenants::new(install_key, &settings.clients),
            admin: AdminToken::new(install_key, settings.admin_token.as_ref()),
            origins: Origins::new(&settings.allow_origins),
            bodies: Bodies::new(settings.max_body, settings.body_stall, budget),
        }
    }
}

/// Whom other settings make known or unknown.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Turnover {
    /// Clients that are configured no more.
    pub gone: Vec<Tenant>,
    /// Those that are configured now.
    pub here: Vec<Tenant>,
}

/// Which of the bridge's listeners a request came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    /// `server.listen`.
    Clients,
    /// `server.admin_listen`: health and metrics, nothing for clients.
    Operators,
}

/// Where a request came in.
#[derive(Clone, Copy, Debug)]
struct Entrance {
    door: Door,
    listen: SocketAddr,
}

impl<B> Clone for Edge<B> {
    fn clone(&self) -> Self {
        Edge(self.0.clone())
    }
}

impl<B: Bridge> Edge<B> {
    /// `install_key` keys every hash; `budget` bounds the bodies of all requests together; `events` hears of
    /// every refusal that is made here.
    pub fn new(
        bridge: Arc<B>,
        settings: &Settings,
        install_key: &[u8; 32],
        budget: Budget,
        events: Events,
    ) -> Self {
        Edge(Arc::new(Shared {
            bridge,
            rules: ArcSwap::from_pointee(Rules::of(settings, install_key, budget.clone())),
            install_key: *install_key,
            body_stall: settings.body_stall,
            budget,
            admin_elsewhere: settings.admin_elsewhere,
            attempts: Attempts::default(),
            operators: None,
            page: None,
            events,
            traced: settings.traced,
        }))
    }

    /// Puts other settings in force for the requests that come from now on, all at once. How long a body may stand still, and
    /// whether the operators have a listener of their own, stays. Says which clients have gone.
    pub fn reconfigure(&self, settings: &Settings) -> Turnover {
        let shared = &*self.0;
        let settings = Settings {
            body_stall: shared.body_stall,
            ..settings.clone()
        };
        let mut rules = Rules::of(&settings, &shared.install_key, shared.budget.clone());
        let here = rules.tenants.all();
        rules.admin.replace(&shared.rules.load().admin);
        let mut gone = shared.rules.swap(Arc::new(rules)).tenants.all();
        gone.retain(|tenant| !here.contains(tenant));
        Turnover { gone, here }
    }

    /// The service of `server.listen`. `listen` is the address really bound: it decides what only loopback may.
    pub fn clients(
        &self,
        listen: SocketAddr,
    ) -> impl Service<Request<Incoming>, Response = Reply, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
    + use<B> {
        self.service(Entrance {
            door: Door::Clients,
            listen,
        })
    }

    /// The service of `server.admin_listen`.
    pub fn operators(
        &self,
        listen: SocketAddr,
    ) -> impl Service<Request<Incoming>, Response = Reply, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
    + use<B> {
        self.service(Entrance {
            door: Door::Operators,
            listen,
        })
    }

    fn service(
        &self,
        entrance: Entrance,
    ) -> impl Service<Request<Incoming>, Response = Reply, Error = Infallible, Future: Send>
    + Clone
    + Send
    + 'static
    + use<B> {
        let edge = self.clone();
        service_fn(move |request| {
            let edge = edge.clone();
            async move { Ok(edge.answer(entrance, request).await) }
        })
    }

    /// Answers one request, whatever happens.
    async fn answer(&self, entrance: Entrance, request: Request<Incoming>) -> Reply {
        let arrived = runtime::now();
        let rules = self.0.rules.load_full();
        let admin = self.asked_by_operator(&rules, entrance, &request);
        let door = match admin.is_some() || self.is_looked(entrance, &request) {
            true => event::AT_OPERATORS,
            false => event::AT_CLIENTS,
        };
        let mut id = CallIds::of(request.headers(), self.0.traced, door);
        if door == event::AT_CLIENTS {
            id.names = self.0.events.names(key::said(request.headers()));
        }
        let page = match rules.origins.judge(entrance.listen, &request, admin.is_some()) {
            Ok(page) => page,
            Err(refusal) => return reply::finish(self.refused(&refusal, &id), &id.request_id, None),
        };
        let answer = match page {
            Some(ref page) if origin::is_preflight(&request) => Ok(page.preflight(request.headers())),
            _ => {
                // A fault of ours must cost one answer, not the connection and what else waits on it.
                let answering = AssertUnwindSafe(async {
                    match admin {
                        Some(admin) => self.operate(admin, &rules, request, &id).await,
                        None => self.route(&rules, entrance, request, (arrived, &id)).await,
                    }
                });
                answering
                    .catch_unwind()
                    .await
                    .unwrap_or(Err(Kind::Internal.into()))
            }
        };
        let answer = answer.unwrap_or_else(|refusal| self.refused(&refusal, &id));
        reply::finish(answer, &id.request_id, page.as_ref())
    }

    /// The reply to a method that a path does not take.
    fn not_allowed(&self, methods: Methods, id: &CallIds) -> Reply {
        let mut reply = self.refused(&Kind::MethodNotAllowed.into(), id);
        if let Methods::Only(list) = methods {
            reply.headers_mut().insert(ALLOW, HeaderValue::from_static(list));
        }
        reply
    }

    /// The reply to a request that got no further than here.
    fn refused(&self, refusal: &Refusal, id: &CallIds) -> Reply {
        self.0.events.emit(&Event::Refused {
            ids: id.bare(),
            reason: refusal.kind,
            door: id.door,
        });
        reply::refused(refusal)
    }

    async fn route(
        &self,
        rules: &Rules,
        entrance: Entrance,
        request: Request<Incoming>,
        (arrived, id): (Instant, &CallIds),
    ) -> Result<Reply, Refusal> {
        let (head, body) = request.into_parts();
        let (method, uri, mut headers) = (head.method, head.uri, head.headers);
        let route = match Route::of(uri.path())? {
            Route::Look(look) => return self.look(&rules.admin, entrance, look, (&method, &headers), id),
            Route::Api(_) if entrance.door == Door::Operators => return Err(Kind::NotFound.into()),
            Route::Api(route) => route,
        };
        if routes::is_upgrade(&method, &headers) {
            return Err(Kind::UpgradeNotSupported.into());
        }
        let tenant = rules.tenants.of(&headers)?;
        if !route.methods().take(&method) {
            return Ok(self.not_allowed(route.methods(), id));
        }
        auth::mark_sensitive(&mut headers);
        let chatgpt = uri.path().starts_with("/backend-api/") || headers.contains_key("chatgpt-account-id");
        let caller = Caller {
            tenant,
            request_id: id.request_id.clone(),
            trace: id.trace.clone(),
            names: id.names,
            headers,
            chatgpt,
            arrived,
        };
        match route {
            Api::Create => self.create(&rules.bodies, caller, body).await,
            Api::Lookup { id, tail } => {
                self.lookup(
                    &rules.bodies,
                    caller,
                    (method, &uri),
                    (id.into_owned(), tail),
                    body,
                )
                .await
            }
            Api::Pass { base, path } => {
                self.pass(&rules.bodies, caller, (method, &uri), (base, path), body)
                    .await
            }
        }
    }
}
