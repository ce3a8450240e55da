use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

fn hash(n: u64) -> Hash16 {
    let mut bytes = [0; 16];
    // Few beginnings, so that entries meet in the index.
    bytes[..8].copy_from_slice(&(n % 3).to_le_bytes());
    bytes[8..].copy_from_slice(&n.to_le_bytes());
    Hash16(bytes)
}

#[derive(Clone, Debug)]
enum Step {
    Put(u64, u32),
    Get(u64),
    Peek(u64),
    Remove(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..12u64, any::<u32>()).prop_map(|(n, value)| Step::Put(n, value)),
        (0..12u64).prop_map(Step::Get),
        (0..12u64).prop_map(Step::Peek),
        (0..12u64).prop_map(Step::Remove),
    ];
    proptest::collection::vec(step, 0..200)
}

proptest! {
    /// [KEY-13] [INV-7] whatever is done to it, it holds what a plain list ordered by use would hold.
    #[test]
    fn it_is_a_list_ordered_by_use(steps in steps(), cap in 1..9usize) {
        let mut map = Compact::new(cap);
        // Most recently used first.
        let mut list = VecDeque::<(u64, u32)>::new();
        for step in steps {
            let place = |list: &VecDeque<(u64, u32)>, n| list.iter().position(|(known, _)| *known == n);
            match step {
                Step::Put(n, value) => {
                    let known = place(&list, n).and_then(|at| list.remove(at)).is_some();
                    let over = !known && list.len() == cap;
                    if over {
                        list.pop_back();
                    }
                    list.push_front((n, value));
                    prop_assert_eq!(map.put(hash(n), value), over);
                }
                Step::Get(n) => {
                    let found = place(&list, n).and_then(|at| list.remove(at));
                    if let Some(entry) = found {
                        list.push_front(entry);
                    }
                    prop_assert_eq!(map.get(hash(n)), found.map(|(_, value)| value));
                }
                Step::Peek(n) => {
                    let found = place(&list, n).map(|at| list[at].1);
                    prop_assert_eq!(map.peek(hash(n)), found);
                }
                Step::Remove(n) => {
                    let found = place(&list, n).and_then(|at| list.remove(at));
                    prop_assert_eq!(map.remove(hash(n)), found.is_some());
                }
            }
            prop_assert_eq!(map.len(), list.len());
            prop_assert_eq!(map.is_empty(), list.is_empty());
        }
    }
}

/// [REL-14] [INV-7] with a smaller cap the least recently used leave, with a larger one there is room again; every value can be
/// changed, and the order stays.
#[test]
fn another_cap() {
    let mut map = Compact::new(4);
    for n in 0..4 {
        map.put(hash(n), n);
    }
    map.get(hash(0));
    map.change_all(|value| *value += 10);
    map.set_cap(2);
    assert_eq!(map.len(), 2);
    let held: Vec<_> = (0..4).map(|n| map.peek(hash(n))).collect();
    assert_eq!(held, [Some(10), None, None, Some(13)]);
    map.set_cap(3);
    assert!(!map.put(hash(4), 4));
    assert!(map.put(hash(5), 5), "one beyond the cap");
    assert_eq!(map.peek(hash(3)), None, "the least recently used");
    map.set_cap(0);
    assert_eq!(map.len(), 1, "never none");
}
