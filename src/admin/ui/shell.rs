//! What every page has: the head, the way past it for keyboards, the place of the main thing.

use maud::{DOCTYPE, Markup, html};

/// Where the page lives.
pub(super) const ROOT: &str = "/admin/ui";
pub(super) const STYLE: &str = include_str!("style.css");
pub(super) const SCRIPT: &str = include_str!("live.js");

/// A whole page. `bar` is its banner, beside the name of the product.
pub(super) fn page(title: &str, bar: &Markup, main: &Markup, script: bool) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Responses Bridge" }
                link rel="stylesheet" href={ (ROOT) "/style.css" };
                @if script { script src={ (ROOT) "/live.js" } defer {} }
            }
            body {
                a.skip href="#main" { "Skip to content" }
                header {
                    p.name { "Responses Bridge" }
                    (bar)
                }
                main id="main" tabindex="-1" { (main) }
            }
        }
    }
    .into_string()
}

/// A page that says one thing, and where to go from there.
pub(super) fn note(title: &str, text: &str) -> String {
    let main = html! {
        section.card.narrow {
            h1 { (title) }
            p { (text) }
            p { a.button href=(ROOT) { "Back to the status page" } }
        }
    };
    page(title, &html! {}, &main, false)
}

/// The field that proves that a form comes from our own page (PAGE-6).
pub(super) fn proof(csrf: &str) -> Markup {
    html! { input type="hidden" name="csrf" value=(csrf); }
}
