use super::*;

fn hint(table: &[&str], unknown: &str) -> String {
    let root = schema();
    let table = table.iter().fold(&root, |table, key| &table[*key]);
    nearest_key(&root, table, unknown)
}

const SESSION: [&str; 2] = ["properties", "session"];

/// [CFG-4] A near spelling in the same table wins, whatever other tables have.
#[test]
fn a_near_spelling_is_named() {
    assert_eq!(hint(&SESSION, "max_sesions"), "did you mean `max_sessions`?");
    assert_eq!(hint(&SESSION, "Max-Age"), "did you mean `max_age`?");
    assert_eq!(hint(&[], "watchdogs"), "did you mean `watchdog`?");
    assert_eq!(hint(&[], "provider"), "did you mean `providers`?");
}

/// [CFG-4] Else the table where such a key does exist, nested ones included.
#[test]
fn the_right_table_is_named() {
    assert_eq!(
        hint(&SESSION, "ping_interval"),
        "`ping_interval` belongs to [watchdog]"
    );
    assert_eq!(
        hint(&SESSION, "base_url"),
        "`base_url` belongs to [providers.NAME]"
    );
    assert_eq!(
        hint(&SESSION, "credential"),
        "`credential` belongs to [[providers.NAME.accounts]]"
    );
    assert_eq!(hint(&SESSION, "key"), "`key` belongs to [[clients]]");
}

/// [CFG-4] Else all keys of this one.
#[test]
fn the_tables_keys_are_named() {
    let keys =
        "the keys here are idle_ttl, max_age, max_per_key, max_queue, max_sessions, prewarm, queue_wait";
    assert_eq!(hint(&SESSION, "colour"), keys);
}
