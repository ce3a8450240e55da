use std::time::{Duration, Instant};

use super::*;
use crate::bridge::availability::Reason;
use crate::bridge::routing::Strategy;

const A: AccountId = AccountId(0);
const B: AccountId = AccountId(1);
const C: AccountId = AccountId(2);
const RULES: Rules = Rules {
    shared: false,
    forward_unknown: false,
};

fn able(account: AccountId) -> Able {
    Able {
        account,
        serves: true,
        own: false,
        out: None,
        in_flight: 0,
        tried: false,
    }
}

fn out(account: AccountId, reason: Reason) -> Able {
    let until = Instant::now() + Duration::from_secs(30);
    Able {
        out: Some(Unavailable { reason, until }),
        ..able(account)
    }
}

fn facts(kind: KeyKind) -> Facts<'static> {
    Facts {
        named: Named::Nothing,
        carries: false,
        owners: &[],
        kind,
        pin: None,
    }
}

fn pinned(kind: KeyKind, account: AccountId, bound: bool) -> Facts<'static> {
    let pin = Pin {
        account,
        bound,
        expires_at: u64::MAX,
    };
    Facts {
        pin: Some(pin),
        ..facts(kind)
    }
}

fn by(facts: &Facts<'_>, able: &[Able], rules: Rules) -> (Decision, Vec<Out>) {
    let mut chooser = Chooser::new(Strategy::Priority, [1; 3]);
    let mut excluded = Vec::new();
    let decision = decide(facts, able, rules, &mut chooser, 0, &mut excluded);
    (decision, excluded)
}

fn decided(facts: &Facts<'_>, able: &[Able]) -> Decision {
    by(facts, able, RULES).0
}

const PRIORITY: Why = Why::Strategy("priority");

/// [ROUTE-4] what it names outranks what it carries, that outranks the pin, that outranks the strategy.
#[test]
fn the_order() {
    let all = [able(A), able(B), able(C)];
    let mut facts = pinned(KeyKind::Thread, B, true);
    assert_eq!(decided(&facts, &all), Decision::To(B, Why::Pin));
    facts.carries = true;
    assert_eq!(
        decided(&facts, &all),
        Decision::To(B, Why::Pin),
        "carried, and nobody's as far as known"
    );
    facts.owners = &[C, C];
    assert_eq!(decided(&facts, &all), Decision::To(C, Why::Item));
    facts.named = Named::Owned(C);
    assert_eq!(decided(&facts, &all), Decision::To(C, Why::Named));
    facts.pin = None;
    facts.named = Named::Nothing;
    facts.owners = &[];
    facts.carries = false;
    assert_eq!(decided(&facts, &all), Decision::To(A, PRIORITY));
    assert_eq!(decided(&facts, &all[2..]), Decision::To(C, Why::Only));
}

/// [ROUTE-8] things of two accounts go to neither.
#[test]
fn conflicts() {
    let all = [able(A), able(B)];
    let mut facts = Facts {
        carries: true,
        owners: &[A, B],
        ..facts(KeyKind::Keyless)
    };
    assert_eq!(decided(&facts, &all), Decision::Conflict);
    facts.owners = &[B];
    facts.named = Named::Owned(A);
    assert_eq!(decided(&facts, &all), Decision::Conflict);
}

/// [ROUTE-9] [INV-6] a response or item that is nobody's: with one account, or the caller's own credential, it is looked for
/// there; with several it is refused, unless the operator wants it forwarded; with shared credentials a response is refused.
#[test]
fn unknown_owners() {
    let several = [able(A), able(B)];
    let own = [able(A), Able { own: true, ..able(B) }];
    let both_own = [Able { own: true, ..able(A) }, Able { own: true, ..able(B) }];
    let forward = Rules {
        forward_unknown: true,
        ..RULES
    };
    let shared = Rules {
        shared: true,
        forward_unknown: true,
    };
    let response = Facts {
        named: Named::Unknown,
        ..facts(KeyKind::Thread)
    };
    assert_eq!(by(&response, &several[..1], RULES).0, Decision::To(A, Why::Only));
    assert_eq!(by(&response, &several, RULES).0, Decision::UnknownResponse);
    assert_eq!(by(&response, &own, RULES).0, Decision::To(B, Why::Only));
    assert_eq!(by(&response, &both_own, RULES).0, Decision::UnknownResponse);
    assert_eq!(by(&response, &several, forward).0, Decision::To(A, PRIORITY));
    assert_eq!(by(&response, &several, shared).0, Decision::UnknownResponse);
    assert_eq!(by(&response, &several[..1], shared).0, Decision::UnknownResponse);
    let item = Facts {
        carries: true,
        ..facts(KeyKind::Thread)
    };
    assert_eq!(by(&item, &several[..1], RULES).0, Decision::To(A, Why::Only));
    assert_eq!(by(&item, &several, RULES).0, Decision::UnknownItem);
    assert_eq!(by(&item, &own, RULES).0, Decision::To(B, Why::Only));
    assert_eq!(by(&item, &several, forward).0, Decision::To(A, PRIORITY));
    let pin = Facts {
        carries: true,
        ..pinned(KeyKind::Thread, B, false)
    };
    assert_eq!(by(&pin, &several, RULES).0, Decision::To(B, Why::Pin));
}

/// [KEY-42] [ROUTE-7] what becomes of a key whose account is unavailable: soft ones move, hard ones only where nothing of
/// theirs lives there, and no request that carries something. What must stay is refused, but for limits, which upstream tells.
#[test]
fn a_pinned_account_that_is_unavailable() {
    let soft = KeyKind::PromptCache;
    for (kind, bound, carries, moves) in [
        (soft, false, false, true),
        (soft, true, false, true),
        (soft, false, true, false),
        (KeyKind::Thread, false, false, true),
        (KeyKind::Thread, true, false, false),
        (KeyKind::Session, true, false, false),
        (KeyKind::Conversation, true, false, false),
        (KeyKind::Session, false, true, false),
    ] {
        let facts = Facts {
            carries,
            ..pinned(kind, A, bound)
        };
        for reason in [
            Reason::Unreachable,
            Reason::Credential,
            Reason::RateLimit,
            Reason::Quota,
        ] {
            let all = [out(A, reason), able(B)];
            let (decision, excluded) = by(&facts, &all, RULES);
            match decision {
                Decision::To(B, Why::Moved) => {
                    assert!(moves, "{kind:?}");
                    assert_eq!(excluded, [(A, reason.label())]);
                }
                Decision::To(A, Why::Pin) => assert!(!moves && reason.is_limit(), "{kind:?}"),
                Decision::OwnerUnavailable(A, _) => assert!(!moves && !reason.is_limit(), "{kind:?}"),
                other => panic!("{other:?}"),
            }
        }
        let all = [out(A, Reason::Unreachable), out(B, Reason::Quota)];
        if moves {
            assert_eq!(decided(&facts, &all), Decision::To(A, Why::Pin), "none is better");
        }
    }
}

/// [ROUTE-7] an owner that is unavailable is told so; one that is over its limit tells so itself.
#[test]
fn an_owner_that_is_unavailable() {
    let named = Facts {
        named: Named::Owned(A),
        ..facts(KeyKind::Thread)
    };
    let item = Facts {
        carries: true,
        owners: &[A],
        ..facts(KeyKind::Thread)
    };
    for facts in [named, item] {
        for reason in [Reason::Unreachable, Reason::Credential] {
            let all = [out(A, reason), able(B)];
            assert!(matches!(decided(&facts, &all), Decision::OwnerUnavailable(A, _)));
            assert!(
                matches!(decided(&facts, &all[..1]), Decision::To(A, _)),
                "a single account"
            );
        }
        assert!(matches!(
            decided(&facts, &[out(A, Reason::RateLimit), able(B)]),
            Decision::To(A, _)
        ));
    }
    let elsewhere = Facts {
        named: Named::Owned(C),
        ..facts(KeyKind::Thread)
    };
    assert_eq!(
        decided(&elsewhere, &[able(A), able(B)]),
        Decision::To(C, Why::Named),
        "of another kind"
    );
}

/// [ROUTE-1] only accounts that serve the model; a pin to one that does not is none; none at all is told.
#[test]
fn models() {
    let not = |account| Able {
        serves: false,
        ..able(account)
    };
    assert_eq!(
        decided(&facts(KeyKind::Keyless), &[not(A), able(B)]),
        Decision::To(B, Why::Only)
    );
    assert_eq!(
        decided(&facts(KeyKind::Keyless), &[not(A), not(B)]),
        Decision::NotServed
    );
    assert_eq!(decided(&facts(KeyKind::Keyless), &[not(A)]), Decision::NotServed);
    let (decision, excluded) = by(
        &pinned(KeyKind::Thread, A, true),
        &[not(A), able(B), able(C)],
        RULES,
    );
    assert_eq!(
        (decision, excluded),
        (Decision::To(B, PRIORITY), vec![(A, "model")])
    );
}

/// [ROUTE-5] unavailable accounts are left out; where all are, the one that is back first is taken; a single one is never
/// left out.
#[test]
fn availability() {
    let (decision, excluded) = by(
        &facts(KeyKind::Keyless),
        &[out(A, Reason::Quota), able(B), able(C)],
        RULES,
    );
    assert_eq!(
        (decision, excluded),
        (Decision::To(B, PRIORITY), vec![(A, "quota")])
    );
    let mut all = [out(A, Reason::Quota), out(B, Reason::Unreachable)];
    assert_eq!(
        decided(&facts(KeyKind::Keyless), &all[..1]),
        Decision::To(A, Why::Only)
    );
    if let Some(out) = &mut all[1].out {
        out.until -= Duration::from_secs(10);
    }
    assert_eq!(decided(&facts(KeyKind::Keyless), &all), Decision::To(B, PRIORITY));
}

/// [ROUTE-6] a call that was rejected goes to each other account once.
#[test]
fn elsewhere_is_where_it_has_not_been() {
    let tried = |account| Able {
        tried: true,
        ..able(account)
    };
    let mut chooser = Chooser::new(Strategy::Priority, [1; 3]);
    let mut excluded = Vec::new();
    let all = [tried(A), out(B, Reason::Credential), able(C)];
    assert_eq!(elsewhere(&all, &mut chooser, 0, &mut excluded), Some(C));
    assert_eq!(excluded, [(A, "tried"), (B, "credential")]);
    assert_eq!(elsewhere(&all[..2], &mut chooser, 0, &mut excluded), None);
}

/// [INV-6] [ROUTE-4] over all combinations: what is owned by one account goes there or nowhere; what is bound never moves; an
/// account that was chosen for anything else than ownership or a pin serves the model and, if another one is, is available.
#[test]
fn ownership_is_never_guessed() {
    let named = [
        Named::Nothing,
        Named::Unknown,
        Named::Owned(A),
        Named::Owned(B),
        Named::Owned(C),
    ];
    let owners: [&[AccountId]; 5] = [&[], &[A], &[B], &[C], &[A, B]];
    let pins = [None, Some((A, false)), Some((A, true)), Some((B, true))];
    let states = [None, Some(Reason::Unreachable), Some(Reason::RateLimit)];
    let kinds = [KeyKind::Keyless, KeyKind::PromptCache, KeyKind::Thread];
    let mut cases = 0;
    for bits in 0..16_u32 {
        let bit = |n: u32| bits >> n & 1 == 1;
        let rules = Rules {
            shared: bit(0),
            forward_unknown: bit(1),
        };
        for (named, owners, pin, kind) in cases_of(&named, &owners, &pins, &kinds) {
            for (first, second) in states
                .iter()
                .flat_map(|first| states.iter().map(move |second| (first, second)))
            {
                let one = |account, reason: &Option<Reason>, serves| Able {
                    serves,
                    ..reason.map_or(able(account), |reason| out(account, reason))
                };
                let all = [one(A, first, true), one(B, second, bit(2))];
                let facts = Facts {
                    named,
                    owners,
                    carries: !owners.is_empty() || bit(3),
                    kind,
                    pin: pin.map(|(account, bound)| Pin {
                        account,
                        bound,
                        expires_at: u64::MAX,
                    }),
                };
                let (decision, _) = by(&facts, &all, rules);
                let mut known = owners.to_vec();
                if let Named::Owned(account) = named {
                    known.push(account);
                }
                let bound = facts.carries || named != Named::Nothing;
                cases += 1;
                match decision {
                    Decision::To(account, why) => {
                        assert!(known.iter().all(|owner| *owner == account), "{facts:?}");
                        assert!(!bound || why != Why::Moved, "{facts:?}");
                        let mine = all.iter().find(|one| one.account == account);
                        let chosen = !matches!(why, Why::Named | Why::Item | Why::Pin);
                        assert!(!chosen || mine.is_some_and(|one| one.serves), "{facts:?}");
                        let better = all.iter().any(|one| one.serves && one.out.is_none());
                        assert!(
                            !chosen
                                || !better
                                || why == Why::Only
                                || mine.is_some_and(|one| one.out.is_none())
                        );
                        let unknown = bound && known.is_empty() && facts.pin.is_none();
                        assert!(!unknown || rules.forward_unknown || why == Why::Only, "{facts:?}");
                        assert!(named != Named::Unknown || !rules.shared, "{facts:?}");
                    }
                    Decision::OwnerUnavailable(account, _) => {
                        let pinned = pin.map(|(account, _)| account);
                        assert!(known.iter().all(|owner| *owner == account), "{facts:?}");
                        assert!(!known.is_empty() || pinned == Some(account), "{facts:?}");
                    }
                    Decision::Conflict => assert!(known.iter().any(|owner| *owner != known[0])),
                    Decision::UnknownResponse => assert_eq!(named, Named::Unknown),
                    Decision::UnknownItem => assert!(facts.carries && known.is_empty()),
                    Decision::NotServed => panic!("A serves: {facts:?}"),
                }
            }
        }
    }
    assert_eq!(cases, 16 * 5 * 5 * 4 * 3 * 9);
}

type Case<'a> = (Named, &'a [AccountId], Option<(AccountId, bool)>, KeyKind);

fn cases_of<'a>(
    named: &'a [Named],
    owners: &'a [&'a [AccountId]],
    pins: &'a [Option<(AccountId, bool)>],
    kinds: &'a [KeyKind],
) -> Vec<Case<'a>> {
    let mut cases = Vec::new();
    for named in named {
        for owners in owners {
            for pin in pins {
                cases.extend(kinds.iter().map(|kind| (*named, *owners, *pin, *kind)));
            }
        }
    }
    cases
}
