use super::*;

fn probe(after_ms: u64, answered: bool) -> Probe {
    Probe { after_ms, answered }
}

fn only(incidents: Incidents) -> Vec<Probe> {
    let mut all = incidents.all();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0).probes
}

/// [TUNE-7] a silent probe, a freed one that says nothing, and an answered one; times count from the opening.
#[test]
fn one_quarantine() {
    let mut incidents = Incidents::default();
    incidents.opened("a".into(), 1000);
    incidents.probed("a", 62_000);
    incidents.opened("a".into(), 122_000);
    incidents.probed("a", 243_000);
    incidents.probed("a", 250_000);
    incidents.cleared("a");
    assert_eq!(only(incidents), [probe(61_000, false), probe(249_000, true)]);
}

/// [TUNE-7] a sibling that goes silent too begins the window anew; a new quarantine after a clear is a new one.
#[test]
fn siblings_and_relapses() {
    let mut incidents = Incidents::default();
    incidents.opened("a".into(), 0);
    incidents.opened("a".into(), 20_000);
    incidents.probed("a", 81_000);
    incidents.cleared("a");
    incidents.opened("a".into(), 100_000);
    incidents.probed("a", 221_000);
    incidents.cleared("a");
    let probes: Vec<_> = incidents
        .all()
        .into_iter()
        .map(|incident| incident.probes)
        .collect();
    assert_eq!(probes, [[probe(61_000, true)], [probe(121_000, true)]]);
}

/// [TUNE-7] what was never probed, or has lost its beginning, or spans a clock that was set back, says nothing; one that an
/// operator cleared says what its probes had said.
#[test]
fn what_says_nothing_is_left_out() {
    let mut incidents = Incidents::default();
    incidents.probed("unopened", 5);
    incidents.cleared("unopened");
    incidents.opened("unprobed".into(), 0);
    incidents.opened("back".into(), 1000);
    incidents.probed("back", 500);
    incidents.cleared("back");
    incidents.opened("operator".into(), 0);
    incidents.probed("operator", 60_000);
    incidents.opened("operator".into(), 120_000);
    incidents.probed("operator", 250_000);
    incidents.ended("operator");
    assert_eq!(only(incidents), [probe(60_000, false)]);
}
