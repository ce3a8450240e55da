//! What a signed-in browser may change, and from where: by the page's forms, and by the API with its cookie.

use serde_json::json;

use crate::raw::{Said, request, say};
use crate::world::World;
use crate::{TOKEN, data, setup};

const OWN: &str = "http://localhost";
/// May call the API for clients, and is a foreign page here.
const FRIEND: &str = "http://localhost:3000";

/// A browser that has signed in: its cookie, and the proof that its forms carry.
pub struct Browser {
    pub cookie: String,
    proof: String,
}

impl Browser {
    pub async fn sign_in(world: &World) -> Browser {
        let form = format!("token={TOKEN}");
        let signing = request("POST /admin/ui/login", &[("origin", OWN)], &form);
        let said = say(world.address, &signing).await;
        assert_eq!(said.status, 303, "{said:?}");
        let cookie = said.header("set-cookie").unwrap().split(';').next().unwrap();
        let page = request("GET /admin/ui", &[("cookie", cookie)], "");
        let page = say(world.address, &page).await;
        let (_, rest) = page.body.split_once("name=\"csrf\" value=\"").unwrap();
        Browser {
            cookie: cookie.to_owned(),
            proof: rest[..64].to_owned(),
        }
    }

    /// Resets a transport by the page's form. `claims` are the headers that say where that comes from.
    async fn post(&self, world: &World, claims: &[(&str, &str)], proof: &str) -> Said {
        let headers: Vec<_> = claims
            .iter()
            .copied()
            .chain([("cookie", self.cookie.as_str()), ("x-operator", "mallory")])
            .collect();
        let form = format!("account=openai/main&csrf={proof}");
        let text = request("POST /admin/ui/breakers/reset", &headers, &form);
        say(world.address, &text).await
    }

    /// The same by the API.
    async fn delete(&self, world: &World, claims: &[(&str, &str)], proof: &str) -> Said {
        let mut headers = claims.to_vec();
        headers.extend([("cookie", self.cookie.as_str()), ("x-operator", "mallory")]);
        if !proof.is_empty() {
            headers.push(("x-csrf-token", proof));
        }
        let text = request("DELETE /admin/breakers/openai/main", &headers, "");
        say(world.address, &text).await
    }
}

async fn signed_in() -> (World, Browser) {
    let world = setup()
        .config(&format!("[server]\nallow_origins = [\"{FRIEND}\"]"))
        .start()
        .await;
    let browser = Browser::sign_in(&world).await;
    (world, browser)
}

/// [ADM-5] [ADM-6] [ADM-34] [PAGE-6] [PAGE-15] [PAGE-23] A change by cookie is made where the browser says that it comes from our
/// own page, and the event says that it was the page's, whatever else the request claims.
#[tokio::test]
async fn our_own_page_may_change() {
    let (world, browser) = signed_in().await;
    let ours: [&[(&str, &str)]; 4] = [
        &[("origin", OWN)],
        &[("sec-fetch-site", "same-origin")],
        &[("origin", OWN), ("sec-fetch-site", "same-origin")],
        &[("origin", "https://localhost")],
    ];
    for claims in ours {
        let before = world.events("operator_action").len();
        let posted = browser.post(&world, claims, &browser.proof).await;
        assert_eq!(posted.status, 303, "{claims:?}: {posted:?}");
        let deleted = browser.delete(&world, claims, &browser.proof).await;
        assert_eq!(deleted.status, 200, "{claims:?}: {deleted:?}");
        let told = world.events("operator_action");
        assert_eq!(told.len(), before + 2, "{claims:?}");
        for one in &told[before..] {
            assert_eq!(
                (&one["reason"], &one["by"], &one["account"]),
                (&json!("breaker_reset"), &json!("page"), &json!("main"))
            );
        }
    }
}

/// [ADM-5] [ADM-34] [PAGE-6] [PAGE-23] From anywhere else, or from nowhere, or with no proof or another session's, it is 403 by form and
/// by API; nothing is changed, and each refusal is told.
#[tokio::test]
async fn nobody_else_may() {
    let (world, browser) = signed_in().await;
    let other = Browser::sign_in(&world).await;
    let signed_in = world.events("operator_action").len();
    let foreign: [&[(&str, &str)]; 15] = [
        &[],
        &[("sec-fetch-site", "none")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "cross-site")],
        &[
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "same-origin"),
        ],
        &[("origin", OWN), ("sec-fetch-site", "none")],
        &[("origin", OWN), ("sec-fetch-site", "same-site")],
        &[("origin", OWN), ("sec-fetch-site", "cross-site")],
        &[("origin", OWN), ("origin", OWN)],
        &[("origin", "http://localhost:80")],
        &[("origin", "null"), ("sec-fetch-site", "same-origin")],
        &[("origin", "http://evil.example")],
        &[
            ("origin", "http://evil.example"),
            ("sec-fetch-site", "same-origin"),
        ],
        &[("origin", FRIEND), ("sec-fetch-site", "same-site")],
        &[("origin", FRIEND), ("sec-fetch-site", "same-origin")],
    ];
    for claims in foreign {
        let refused = world.events("refused").len();
        let posted = browser.post(&world, claims, &browser.proof).await;
        let deleted = browser.delete(&world, claims, &browser.proof).await;
        assert_eq!((posted.status, deleted.status), (403, 403), "{claims:?}");
        assert!(
            ["bridge_forged_change", "bridge_origin_not_allowed"].contains(&&*deleted.code()),
            "{claims:?}: {deleted:?}"
        );
        assert_eq!(world.events("refused").len(), refused + 2, "{claims:?}");
    }
    let own = [("origin", OWN), ("sec-fetch-site", "same-origin")];
    for proof in [
        "",
        "0",
        &"0".repeat(64),
        &other.proof,
        &browser.proof.to_uppercase(),
    ] {
        let posted = browser.post(&world, &own, proof).await;
        let deleted = browser.delete(&world, &own, proof).await;
        assert_eq!((posted.status, deleted.status), (403, 403), "{proof}");
        assert_eq!(deleted.code(), "bridge_forged_change");
    }
    // The proof without the cookie is no session.
    let alone = Browser {
        cookie: "other=1".into(),
        proof: browser.proof.clone(),
    };
    assert_eq!(alone.post(&world, &own, &alone.proof).await.status, 401);
    assert_eq!(alone.delete(&world, &own, &alone.proof).await.status, 401);
    assert_eq!(
        world.events("operator_action").len(),
        signed_in,
        "something was changed"
    );
    assert_eq!(data(&world, "/admin/breakers").await[0]["state"], "closed");
}

/// [ADM-2] [PAGE-23] The token decides before the cookie: who has it needs no proof and is named by it; a wrong one beside a good cookie
/// is the browser's.
#[tokio::test]
async fn the_token_before_the_cookie() {
    let (world, browser) = signed_in().await;
    let bearer = format!("Bearer {TOKEN}");
    let said = browser.delete(&world, &[("authorization", &bearer)], "").await;
    assert_eq!(said.status, 200);
    assert_eq!(world.events("operator_action").last().unwrap()["by"], "mallory");
    let wrong = [("authorization", "Bearer wrong")];
    assert_eq!(browser.delete(&world, &wrong, &browser.proof).await.status, 403);
}
