//! Signing in.

use maud::html;

use super::shell::{self, ROOT};

/// What was wrong with the last try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The token.
    Token,
    /// Too many tries.
    TooMany,
    /// The session is over.
    Over,
}

impl Wrong {
    fn words(self) -> &'static str {
        match self {
            Wrong::Token => {
                "That is not the admin token. It is what server.admin_token names in the configuration."
            }
            Wrong::TooMany => {
                "That is not the admin token, and there were too many wrong ones. Wait some seconds, then try again."
            }
            Wrong::Over => "Your session is over. Sign in again.",
        }
    }
}

/// The page with the form.
pub(super) fn page(wrong: Option<Wrong>) -> String {
    let bad = wrong.is_some_and(|wrong| wrong != Wrong::Over);
    let main = html! {
        section.card.narrow {
            h1 { "Sign in" }
            @if let Some(wrong) = wrong {
                p.alert id="wrong" role="alert" { (wrong.words()) }
            }
            form method="post" action={ (ROOT) "/login" } {
                label for="token" { "Admin token" }
                input id="token" name="token" type="password" autocomplete="current-password" required autofocus
                    maxlength="4096" spellcheck="false"
                    aria-invalid=[bad.then_some("true")] aria-describedby=[wrong.map(|_| "wrong")];
                button.primary type="submit" { "Sign in" }
            }
            p.quiet { "This page shows sessions, quarantine, accounts and events of this bridge. It never shows prompts or answers." }
        }
    };
    shell::page("Sign in", &html! {}, &main, false)
}
