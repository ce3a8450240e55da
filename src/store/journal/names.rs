//! A row's names as it has them: eight bytes each.

use crate::journal::Names;

const NAME: usize = size_of::<u64>();

pub(super) fn written(names: &Names, into: &mut Vec<u8>) {
    into.clear();
    into.extend(names.as_slice().iter().flat_map(|name| name.to_be_bytes()));
}

/// None where they are damaged.
pub(super) fn read(bytes: &[u8]) -> Option<impl Iterator<Item = u64>> {
    let (names, rest) = bytes.as_chunks::<NAME>();
    rest.is_empty()
        .then(|| names.iter().map(|name| u64::from_be_bytes(*name)))
}
