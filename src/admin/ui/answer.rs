//! Which request gets which page, and who may do what.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use tokio_util::sync::CancellationToken;

use super::cookie::{self, Id, Logins};
use super::login::{self, Wrong};
use super::overview::{self, Visit};
use super::reply::{Answer, HTML};
use super::shell::{self, ROOT};
use super::view::Filter;
use super::{filter, look, quarantine, stream};
use crate::admin::Browsers;
use crate::event::Event;
use crate::refusal::Kind;
use crate::runtime::Runtime;
use crate::runtime::operate::Done;
use crate::wire::sender::Sender;

/// A form of ours is far shorter.
const LONGEST_FORM: usize = 16 * 1024;
/// A form that has not come by then is not coming.
const FORM_WITHIN: Duration = Duration::from_secs(10);
/// Pages that may look on at once.
const MOST_STREAMS: usize = 32;
/// Who acts, where the page's session is all that is known.
const BY: &str = "page";

/// The admin token, as the page may ask about it.
pub trait Token: Send + Sync {
    /// Whether this is the token. Wrong ones are counted together with those of the API.
    fn judge(&self, secret: &str) -> Judged;
    /// A keyed hash of the one in force.
    fn fingerprint(&self) -> Option<[u8; 32]>;
    /// Cancelled when the one in force is not any more.
    fn revoked(&self) -> CancellationToken;
}

/// What came of trying a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    Right,
    Wrong,
    /// Wrong, as too many before it.
    TooMany,
}

/// A request for the page.
pub struct Ask<'a> {
    pub method: &'a Method,
    /// Begins with `/admin/ui`.
    pub path: &'a str,
    pub query: Option<&'a str>,
    pub headers: &'a HeaderMap,
    pub token: Arc<dyn Token>,
}

/// The status page of one bridge.
pub struct Ui {
    pub(super) runtime: Arc<Runtime>,
    /// A std mutex, held for a look-up: never across an await.
    logins: std::sync::Mutex<Logins>,
    streams: Arc<tokio::sync::Semaphore>,
    has_journal: bool,
}

/// What there is below [`ROOT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Overview,
    Login,
    Logout,
    Clear,
    ClearAll,
    Reset,
    Events,
    Style,
    Script,
}

impl Place {
    fn of(path: &str) -> Option<Place> {
        Some(match path.strip_prefix(ROOT)? {
            "" | "/" => Place::Overview,
            "/login" => Place::Login,
            "/logout" => Place::Logout,
            "/quarantine/clear" => Place::Clear,
            "/quarantine/clear-all" => Place::ClearAll,
            "/breakers/reset" => Place::Reset,
            "/events" => Place::Events,
            "/style.css" => Place::Style,
            "/live.js" => Place::Script,
            _ => return None,
        })
    }

    fn methods(self) -> &'static str {
        match self {
            Place::Overview | Place::Events | Place::Style | Place::Script => "GET, HEAD",
            Place::Login | Place::ClearAll => "GET, HEAD, POST",
            Place::Logout | Place::Clear | Place::Reset => "POST",
        }
    }
}

/// The fields of a form.
struct Form(Vec<(String, String)>);

impl Form {
    /// A field's value; empty where it is missing.
    fn field(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(field, _)| field == name);
        found.map_or("", |(_, value)| value)
    }
}

impl Ui {
    /// The page of `runtime`. `has_journal`: turns are written down.
    pub fn new(runtime: Arc<Runtime>, has_journal: bool) -> Arc<Ui> {
        Arc::new(Ui {
            runtime,
            logins: std::sync::Mutex::default(),
            streams: Arc::new(tokio::sync::Semaphore::new(MOST_STREAMS)),
            has_journal,
        })
    }

    /// Whether a path is the page's.
    pub fn has(path: &str) -> bool {
        path.strip_prefix(ROOT)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Answers one request.
    pub async fn answer<B>(self: &Arc<Self>, ask: Ask<'_>, body: B) -> Answer
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let Some(place) = Place::of(ask.path) else {
            return Answer::no(Kind::NotFound, "Nothing here", "There is no such page.");
        };
        if !place.methods().split(", ").any(|one| one == ask.method.as_str()) {
            return Answer::only(place.methods());
        }
        let sender = Sender::of(ask.headers);
        if sender == Sender::Foreign {
            return forged();
        }
        if ask.method == Method::POST {
            let Sender::Ours { https } = sender else {
                return forged();
            };
            return match read(body).await {
                Ok(form) => self.post(place, &ask, &form, https).await,
                Err(kind) => Answer::no(
                    kind,
                    "Not read",
                    "The form did not come whole. Go back and try again.",
                ),
            };
        }
        match place {
            Place::Style => Answer::ok("text/css; charset=utf-8", shell::STYLE),
            Place::Script => Answer::ok("text/javascript; charset=utf-8", shell::SCRIPT),
            Place::Login => Answer::ok(HTML, login::page(None)),
            _ => self.get(place, &ask),
        }
    }

    /// Pages that need a session.
    fn get(self: &Arc<Self>, place: Place, ask: &Ask<'_>) -> Answer {
        let Some(id) = self.session(ask) else {
            return match (place, Id::of(ask.headers)) {
                (Place::Overview, None) => Answer::see("/admin/ui/login"),
                _ => Answer::refuse(Kind::NotAdmin, login::page(Some(Wrong::Over))),
            };
        };
        match place {
            Place::ClearAll => {
                let open = self.runtime.overview().quarantined_keys;
                Answer::ok(HTML, quarantine::confirmation(open, &id.csrf()))
            }
            Place::Events => self.stream(ask, id),
            _ => Answer::ok(HTML, self.overview(&Filter::of(ask.query), &id)),
        }
    }

    fn stream(self: &Arc<Self>, ask: &Ask<'_>, id: Id) -> Answer {
        let full = || {
            Answer::no(
                Kind::TooManyStreams,
                "Too many pages",
                "Too many pages look on at once.",
            )
            .later(10)
        };
        let Ok(room) = self.streams.clone().try_acquire_owned() else {
            return full();
        };
        let after = |text: &str| text.parse::<u64>().ok();
        let asked = filter::form(ask.query.unwrap_or_default().as_bytes());
        let asked = asked
            .iter()
            .find(|(name, _)| name == "after")
            .and_then(|(_, value)| after(value));
        let last = ask
            .headers
            .get("last-event-id")
            .and_then(|last| after(last.to_str().ok()?));
        let after = asked.max(last).unwrap_or_default();
        let (ui, token) = (self.clone(), ask.token.clone());
        stream::open(ui, token, id, Filter::of(ask.query), after, room).unwrap_or_else(full)
    }

    async fn post(&self, place: Place, ask: &Ask<'_>, form: &Form, https: bool) -> Answer {
        if place == Place::Login {
            return self.sign_in(ask, form, https);
        }
        let Some(id) = self.session(ask) else {
            return Answer::refuse(Kind::NotAdmin, login::page(Some(Wrong::Over)));
        };
        if !id.proves(form.field("csrf")) {
            return forged();
        }
        let done = match place {
            Place::Logout => {
                self.logins().close(&id);
                return Answer::see("/admin/ui/login").cookie(&cookie::unset());
            }
            Place::Clear => self.clear(form.field("key")).await,
            Place::ClearAll => match self.runtime.quarantine_clear(None, BY).await {
                Ok(Done(1)) => "1 key cleared. Its next turn uses a session again.".into(),
                Ok(Done(keys)) => format!("{keys} keys cleared. Their next turns use sessions again."),
                Err(_) => "No key was in quarantine.".into(),
            },
            _ => self.reset(form.field("account")),
        };
        self.logins().note(&id, done);
        Answer::see(&Filter::of(ask.query).href())
    }

    async fn clear(&self, key: &str) -> String {
        match self.runtime.quarantine_clear(Some(key), BY).await {
            Ok(_) => format!("Key {key} cleared. Its next turn uses a session again."),
            Err(_) => format!("Key {key} is not in quarantine any more."),
        }
    }

    fn reset(&self, name: &str) -> String {
        let done = name
            .split_once('/')
            .and_then(|(provider, account)| self.runtime.breaker_reset(provider, account, BY).ok());
        match done {
            Some(_) => format!("Transport of {name} reset. New turns may open sessions again."),
            None => format!("There is no account {name}."),
        }
    }

    fn sign_in(&self, ask: &Ask<'_>, form: &Form, https: bool) -> Answer {
        match ask.token.judge(form.field("token").trim()) {
            Judged::Wrong => Answer::refuse(Kind::NotAdmin, login::page(Some(Wrong::Token))),
            Judged::TooMany => {
                Answer::refuse(Kind::TooManyAttempts, login::page(Some(Wrong::TooMany))).later(1)
            }
            Judged::Right => {
                let mut random = [0; 32];
                let (Ok(()), Some(token)) = (getrandom::fill(&mut random), ask.token.fingerprint()) else {
                    return Answer::no(
                        Kind::Internal,
                        "Not signed in",
                        "No session could be made. Try again.",
                    );
                };
                let id = Id::new(random);
                {
                    let mut logins = self.logins();
                    // The browser's session before this one is over: its cookie is replaced.
                    if let Some(before) = Id::of(ask.headers) {
                        logins.close(&before);
                    }
                    logins.open(&id, token, crate::runtime::now());
                }
                self.runtime.events.emit(&Event::OperatorAction {
                    reason: "signed_in",
                    by: BY,
                    at: None,
                    key: None,
                    session: None,
                    count: 1,
                });
                Answer::see(ROOT).cookie(&id.set(https))
            }
        }
    }

    fn overview(&self, filter: &Filter, id: &Id) -> String {
        let notice = self.logins().told(id);
        let (events, seen) = look::latest(&self.runtime, filter);
        let mut view = look::look(&self.runtime, filter, self.uptime(), self.has_journal);
        view.events = events;
        let visit = Visit {
            filter,
            accounts: &look::names(&self.runtime),
            csrf: &id.csrf(),
            notice: notice.as_deref(),
            seen,
        };
        overview::page(&view, &visit)
    }

    /// What changes as a whole, as the page has it now.
    pub(super) fn panels(&self, filter: &Filter, id: &Id) -> String {
        let view = look::look(&self.runtime, filter, self.uptime(), self.has_journal);
        overview::live(&view, &id.csrf(), filter).into_string()
    }

    fn uptime(&self) -> Duration {
        Duration::from_millis(self.runtime.uptime_ms())
    }

    /// The living session of a request.
    fn session(&self, ask: &Ask<'_>) -> Option<Id> {
        Id::of(ask.headers).filter(|id| self.touch(id, &*ask.token))
    }

    /// Whether a session lives; then it is used now.
    pub(super) fn touch(&self, id: &Id, token: &dyn Token) -> bool {
        self.logins()
            .touch(id, token.fingerprint(), crate::runtime::now())
    }

    fn logins(&self) -> std::sync::MutexGuard<'_, Logins> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A signed-in browser may read the admin API, and change something there with its session's proof.
impl Browsers for Arc<Ui> {
    fn is_signed_in(&self, headers: &HeaderMap, fingerprint: Option<[u8; 32]>) -> bool {
        let id = Id::of(headers);
        id.is_some_and(|id| self.logins().touch(&id, fingerprint, crate::runtime::now()))
    }

    fn proves(&self, headers: &HeaderMap) -> bool {
        let proof = headers.get("x-csrf-token").and_then(|proof| proof.to_str().ok());
        Id::of(headers)
            .zip(proof)
            .is_some_and(|(id, proof)| id.proves(proof))
    }
}

fn forged() -> Answer {
    let words = "This did not come from a form of this page, so nothing was changed. Reload the page and try again. \
                 A proxy in front of the bridge must pass the Host header on.";
    Answer::no(Kind::ForgedChange, "Not from this page", words)
}

async fn read<B>(body: B) -> Result<Form, Kind>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let body = std::pin::pin!(body);
    let whole = Limited::new(body, LONGEST_FORM).collect();
    match tokio::time::timeout(FORM_WITHIN, whole).await {
        Ok(Ok(whole)) => Ok(Form(filter::form(&whole.to_bytes()))),
        Ok(Err(_)) => Err(Kind::BodyTooLarge),
        Err(_) => Err(Kind::BodyTimeout),
    }
}
