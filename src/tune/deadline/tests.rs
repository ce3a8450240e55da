use super::*;
use crate::tune::survival::End;
use crate::tune::tests::Dice;

const S: u64 = 1000;

fn rules(in_force: u64) -> Rules {
    Rules {
        key: "watchdog.response_created_deadline",
        in_force_ms: in_force * S,
        floor_ms: 30 * S,
        most_ms: 268 * S,
        candidates: &crate::tune::CREATED,
        late: "response.created",
    }
}

/// Turns of which the watchdog ends those that are not there by `deadline`.
fn watched(deadline: u64, waits: impl Iterator<Item = f64>) -> Vec<Wait> {
    let watched = |wait: f64| match wait <= (deadline * S) as f64 {
        true => (wait as u64, End::Came),
        false => (deadline * S, End::Tripped),
    };
    waits.map(watched).map(|(ms, end)| Wait { ms, end }).collect()
}

fn exponential(count: usize, mean: f64, deadline: u64) -> Vec<Wait> {
    let mut dice = Dice::new(3);
    watched(deadline, (0..count).map(|_| dice.exponential(mean * S as f64)))
}

fn lognormal(count: usize, median: f64, sigma: f64, deadline: u64) -> Vec<Wait> {
    let mut dice = Dice::new(5);
    watched(
        deadline,
        (0..count).map(|_| dice.lognormal(median * S as f64, sigma)),
    )
}

/// A client waited so long, and left.
fn left(seconds: u64) -> Wait {
    Wait {
        ms: seconds * S,
        end: End::GivenUp,
    }
}

/// `waits`, and one client that left.
fn and_left(mut waits: Vec<Wait>, seconds: u64) -> Vec<Wait> {
    waits.push(left(seconds));
    waits
}

fn judged(rules: Rules, of: &[(&str, &Vec<Wait>)]) -> Section {
    section(
        rules,
        &of.iter().map(|(name, waits)| (*name, &waits[..])).collect(),
        Vec::new(),
    )
}

fn sentence(section: &Section) -> String {
    section.verdict.sentence(section.in_force_ms)
}

fn line(group: &Group, seconds: u64) -> &Line {
    let Table::Deadline(lines) = &group.table else {
        panic!("{group:?}")
    };
    lines
        .iter()
        .find(|line| line.candidate_ms == seconds * S)
        .unwrap()
}

fn covers(share: Share, truth: f64) -> bool {
    share.low <= truth && truth <= share.high
}

/// [TUNE-3] [TUNE-5] short exponential waits, none of which trips: the share that each candidate would have ended is
/// the true one, and the floor is recommended, not what the waits alone would allow.
#[test]
fn exponential_waits_go_down_to_the_floor() {
    let waits = and_left(exponential(20_000, 2.0, 60), 50);
    let section = judged(rules(60), &[("gpt-5", &waits)]);
    let group = &section.groups[0];
    for seconds in [5, 10, 20] {
        let truth = (-(seconds as f64) / 2.0).exp();
        assert!(
            covers(line(group, seconds).share, truth),
            "{seconds}: {:?}",
            line(group, seconds)
        );
    }
    assert_eq!(section.verdict.value(), Some(30 * S), "{section:?}");
    assert!(
        sentence(&section).starts_with("lower to 30s: less than 0.1 % of healthy turns"),
        "{section:?}"
    );
}

/// [TUNE-3] [TUNE-5] a heavy tail, median 2 s and sigma 1: 0.34 % are later than 30 s, 0.093 % than 45 s, 0.034 % than
/// 60 s. The shortest that surely spares 99.9 % is 60 s.
#[test]
fn lognormal_waits_keep_their_tail() {
    let quiet = and_left(lognormal(200_000, 2.0, 1.0, 600), 100);
    let section = judged(rules(120), &[("gpt-5", &quiet)]);
    let group = &section.groups[0];
    for (seconds, truth) in [(30, 0.003_38), (45, 0.000_922), (60, 0.000_336)] {
        assert!(
            covers(line(group, seconds).share, truth),
            "{seconds}: {:?}",
            line(group, seconds)
        );
    }
    assert_eq!(section.verdict.value(), Some(60 * S), "{}", sentence(&section));
}

/// [TUNE-3] [TUNE-5] one turn in two hundred is wedged: the watchdog ends those, they are no healthy turns, what a shorter
/// deadline would have saved is told, and it is not recommended all the same.
#[test]
fn wedged_turns_are_told_from_slow_ones() {
    let mut dice = Dice::new(11);
    let mut wedged = 0;
    let waits: Vec<_> = (0..10_000)
        .map(|_| {
            if dice.uniform() < 0.005 {
                wedged += 1;
                f64::INFINITY
            } else {
                dice.exponential(2.0 * S as f64)
            }
        })
        .collect();
    let section = judged(rules(60), &[("gpt-5", &watched(60, waits.into_iter()))]);
    let group = &section.groups[0];
    assert_eq!(group.trips, wedged);
    assert_eq!(line(group, 20).saved_ms, wedged * 40_000);
    assert_eq!((line(group, 60).saved_ms, line(group, 60).lost_ms), (0, 0));
    assert!(
        covers(line(group, 5).share, (-2.5_f64).exp()),
        "{:?}",
        line(group, 5)
    );
    assert!(line(group, 30).share.share < 1e-4);
    assert_eq!(
        sentence(&section),
        "keep 60s: it spares healthy turns, and is never lowered while a turn tripped within the evidence."
    );
}

/// [TUNE-5] one trip of one model is enough: the deadline is one for all.
#[test]
fn never_lower_after_a_trip() {
    let healthy = exponential(20_000, 1.0, 60);
    let tripped = watched(60, [f64::INFINITY].into_iter());
    let section = judged(rules(60), &[("gpt-5", &healthy), ("o4-mini", &tripped)]);
    assert_eq!(section.verdict.value(), None, "{section:?}");
    for group in &section.groups {
        assert_eq!(group.verdict.value(), None, "{group:?}");
    }
    let gpt = section.groups.iter().find(|group| group.name == "gpt-5").unwrap();
    let told = gpt.verdict.sentence(60_000);
    assert!(told.contains("a turn of another model tripped"), "{told}");
}

/// [TUNE-3] [TUNE-5] the deadline was 180 s once and is 30 s now, which ends too many: the turns from then say what would
/// do. Never more than the other windows leave room for.
#[test]
fn a_deadline_that_ends_healthy_turns_is_raised() {
    let then = lognormal(100_000, 2.0, 1.2, 180);
    let section = judged(rules(30), &[("gpt-5", &then)]);
    assert_eq!(section.verdict.value(), Some(90 * S), "{}", sentence(&section));
    let told = sentence(&section);
    assert!(
        told.starts_with("raise to 90s: 1.3 % of healthy turns are later"),
        "{told}"
    );
    let narrow = Rules {
        most_ms: 60 * S,
        ..rules(30)
    };
    let section = judged(narrow, &[("gpt-5", &then)]);
    assert_eq!(section.verdict.value(), None);
    assert!(
        sentence(&section).contains("the other windows leave room for"),
        "{}",
        sentence(&section)
    );
}

/// [TUNE-5] what was never observed is not recommended, and not even estimated: all that is known of those that tripped is
/// that they took longer.
#[test]
fn nothing_beyond_what_was_observed() {
    let cut = lognormal(20_000, 8.0, 1.0, 30);
    let section = judged(rules(30), &[("gpt-5", &cut)]);
    let Table::Deadline(lines) = &section.groups[0].table else {
        panic!("{section:?}")
    };
    assert_eq!(lines.last().unwrap().candidate_ms, 30 * S);
    assert_eq!(section.verdict.value(), None);
    let told = sentence(&section);
    assert!(told.contains("healthy ones come until shortly before"), "{told}");
}

/// [TUNE-3] the watchdog is late by a moment, and a turn is accepted in it: that says nothing about those that tripped.
#[test]
fn a_moment_too_late_is_no_tail() {
    let mut dice = Dice::new(29);
    let mut waits: Vec<_> = (0..20_000).map(|_| dice.exponential(2000.0)).collect();
    waits.extend([f64::INFINITY; 100]);
    let mut waits = watched(60, waits.into_iter());
    waits.push(Wait {
        ms: 60_004,
        end: End::Came,
    });
    let section = judged(rules(60), &[("gpt-5", &waits)]);
    assert!(
        sentence(&section).starts_with("keep 60s: "),
        "{}",
        sentence(&section)
    );
    let line = line(&section.groups[0], 60);
    assert!(line.late == 1 && line.share.share < 0.000_1, "{line:?}");
}

/// [TUNE-4] [TUNE-5] where 1.2 in 1,000 healthy turns are later than 30 s, it is hardly ever recommended, however the dice
/// fall; where none is, it always is.
#[test]
fn a_deadline_that_ends_too_many_is_hardly_ever_recommended() {
    let mut dice = Dice::new(31);
    let mut recommended = |late: f64| {
        let runs = (0..300).filter(|_| {
            let wait = |late| if late { 31_000.0 } else { 1_000.0 };
            let waits = watched(60, (0..6500).map(|_| wait(dice.uniform() < late)));
            judged(rules(60), &[("gpt-5", &and_left(waits, 50))])
                .verdict
                .value()
                == Some(30 * S)
        });
        runs.count()
    };
    let (wrongly, rightly) = (recommended(0.0012), recommended(0.0));
    assert!(wrongly <= 9 && rightly == 300, "{wrongly}, {rightly}");
}

/// [TUNE-4] [TUNE-5] a single turn that was watched for longer, and came, does not speak for all that tripped sooner.
#[test]
fn one_late_turn_is_no_reason_to_raise() {
    let mut waits = watched(60, vec![f64::INFINITY; 40].into_iter());
    waits.extend(exponential(20_000, 2.0, 60));
    let late = |ms, end| Wait { ms, end };
    waits.extend([late(100_000, End::Came), late(130_000, End::GivenUp)]);
    let section = judged(rules(60), &[("gpt-5", &waits)]);
    assert_eq!(section.verdict.value(), None, "{section:?}");
    let line = line(&section.groups[0], 60);
    assert!(line.share.low < 0.001 && line.share.high > 0.001, "{line:?}");
}

/// [TUNE-3] two of three clients leave before their turn is accepted: the share is that of patient ones.
#[test]
fn clients_that_leave_early_hide_no_late_turn() {
    let mut dice = Dice::new(13);
    let waits = (0..30_000)
        .map(|_| {
            let (wait, patience) = (dice.exponential(10_000.0), dice.exponential(5_000.0));
            Wait {
                ms: wait.min(patience) as u64,
                end: if wait <= patience { End::Came } else { End::GivenUp },
            }
        })
        .collect();
    let section = judged(rules(60), &[("gpt-5", &waits)]);
    let line = line(&section.groups[0], 10);
    let truth = (-1.0_f64).exp();
    assert!(covers(line.share, truth), "{line:?}");
    assert!(
        (line.late as f64) < 0.2 * truth * 30_000.0,
        "few were seen: {line:?}"
    );
}

/// [TUNE-6] too few say how many there are and how many it takes; the more of them are unfinished, the more.
#[test]
fn too_few_turns() {
    let section = judged(rules(60), &[("gpt-5", &exponential(1000, 2.0, 60))]);
    assert_eq!(
        sentence(&section),
        "not enough evidence: 1000 turns, 3838 needed."
    );
    let enough = judged(rules(60), &[("gpt-5", &exponential(3838, 2.0, 60))]);
    assert!(
        sentence(&enough).starts_with("keep 60s: no change is worth it"),
        "{enough:?}"
    );

    let mut unfinished = exponential(1000, 2.0, 60);
    let given_up = Wait {
        ms: 100,
        end: End::GivenUp,
    };
    unfinished.extend([given_up; 1000]);
    let section = judged(rules(60), &[("gpt-5", &unfinished)]);
    let Verdict::NotEnough { samples, needed, .. } = section.verdict else {
        panic!("{section:?}")
    };
    assert_eq!(samples, 2000);
    assert!(needed.unwrap() > 6000, "{needed:?}");
}

/// [TUNE-5] below the floor nothing is recommended, not even upwards to it.
#[test]
fn a_deadline_below_the_floor_stays() {
    let section = judged(rules(20), &[("gpt-5", &exponential(20_000, 1.0, 20))]);
    assert_eq!(
        sentence(&section),
        "keep 20s: nothing shorter is ever recommended."
    );
}

/// [TUNE-6] turns that ended early, most of them just before the deadline, hide what would have come: no number of such turns is
/// asked for, least of all one that there is.
#[test]
fn what_is_hidden_is_not_asked_for() {
    let mut waits = exponential(8_000, 2.0, 60);
    waits.extend((0..300).map(|_| left(45)));
    let section = judged(rules(60), &[("gpt-5", &waits)]);
    assert_eq!(
        sentence(&section),
        "keep 60s: turns that ended otherwise before it hide how many healthy ones are later with response.created, and more \
         of that kind would not tell."
    );
}

/// [TUNE-5] a shorter deadline suits all models, or it is not recommended.
#[test]
fn one_slow_model_holds_the_deadline_up() {
    let quick = and_left(exponential(200_000, 1.0, 60), 55);
    // 40 turns, half of which take 40 s: no evidence by themselves, and enough of a reason.
    let slow = watched(
        60,
        (0..40).map(|number| if number % 2 == 0 { 40_000.0 } else { 1_000.0 }),
    );
    let section = judged(rules(60), &[("gpt-5", &quick), ("o1-pro", &slow)]);
    assert_eq!(section.verdict.value(), Some(45 * S), "{}", sentence(&section));
    let slower = watched(
        60,
        (0..40).map(|number| if number % 2 == 0 { 50_000.0 } else { 1_000.0 }),
    );
    let section = judged(rules(60), &[("gpt-5", &quick), ("o1-pro", &slower)]);
    assert!(
        sentence(&section).contains("not for every model"),
        "{}",
        sentence(&section)
    );
}

/// [TUNE-5] where no turn waited in vain, a shorter deadline saves nothing, and no change is worth it; where one model holds it
/// up, neither, unless what is left of the change is worth something.
#[test]
fn nothing_saved_is_no_reason() {
    let healthy = exponential(20_000, 2.0, 60);
    let worthless = "keep 60s: no change is worth it: healthy turns would do with 30s, but none waited in vain for longer than \
                     that, so nothing would have been saved.";
    let section = judged(rules(60), &[("gpt-5", &healthy)]);
    assert_eq!(sentence(&section), worthless);
    // Nor where one left before.
    let section = judged(rules(60), &[("gpt-5", &and_left(healthy.clone(), 30))]);
    assert_eq!(sentence(&section), worthless);
    let section = judged(rules(60), &[("gpt-5", &and_left(healthy, 50))]);
    assert_eq!(
        sentence(&section),
        "lower to 30s: less than 0.1 % of healthy turns are later with response.created, none tripped, and those that came to \
         nothing would have ended 20s sooner in all."
    );
    let quick = and_left(exponential(200_000, 1.0, 60), 40);
    let slow = watched(
        60,
        (0..40).map(|number| if number % 2 == 0 { 40_000.0 } else { 1_000.0 }),
    );
    let section = judged(rules(60), &[("gpt-5", &quick), ("o1-pro", &slow)]);
    assert!(
        sentence(&section).starts_with("keep 60s: no change is worth it: healthy turns would do with 45s"),
        "{}",
        sentence(&section)
    );
}

/// [TUNE-4] what is longer than the deadline in force costs time by each trip, and saves none; who leaves sooner is neither.
#[test]
fn a_longer_deadline_costs() {
    let mut waits = exponential(1000, 2.0, 180);
    waits.extend(watched(60, [f64::INFINITY; 3].into_iter()));
    waits.extend([left(150), left(10)]);
    let section = judged(rules(60), &[("gpt-5", &waits)]);
    let moved = |seconds| {
        let line = line(&section.groups[0], seconds);
        (line.saved_ms, line.lost_ms)
    };
    assert_eq!(
        [moved(30), moved(60), moved(90), moved(150)],
        [(120 * S, 0), (0, 0), (0, 120 * S), (0, 360 * S)]
    );
}

/// [TUNE-1] the ten models with the most turns have tables, the rest one together.
#[test]
fn rare_models_are_told_of_together() {
    let waits: Vec<_> = (0..15)
        .map(|rank| (format!("m{rank:02}"), exponential(100 - rank, 1.0, 60)))
        .collect();
    let of: BTreeMap<_, _> = waits
        .iter()
        .map(|(name, waits)| (name.as_str(), &waits[..]))
        .collect();
    let section = section(rules(60), &of, Vec::new());
    let names: Vec<_> = section
        .groups
        .iter()
        .map(|group| (group.name.as_str(), group.samples))
        .collect();
    assert_eq!(names.len(), 12);
    assert_eq!(
        (names[0].0, names[1], names[10]),
        ("(all models)", ("m00", 100), ("m09", 91))
    );
    assert_eq!(names[11], ("(others)", 90 + 89 + 88 + 87 + 86));
}

/// [TUNE-4] shares are told with the digits that count.
#[test]
fn shares_in_words() {
    let told = [0.0, 0.000_000_1, 0.000_05, 0.001, 0.0012, 0.05, 0.123, 1.0].map(percent);
    assert_eq!(
        told,
        [
            "0 %", "<0.001 %", "0.0050 %", "0.1 %", "0.12 %", "5 %", "12 %", "100 %"
        ]
    );
}
