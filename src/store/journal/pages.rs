//! The index of a few thousand rows: their names, sorted, in sixteen pages by the names' lowest bits. A look-up reads one page
//! of each and searches it.

/// Rows that are indexed together: few enough that sorting their names is a matter of a millisecond.
pub(super) const ROWS: i64 = 4096;
/// Pages that the names of those rows are spread over, so that a look-up reads a sixteenth of the index.
pub(super) const PAGES: i64 = 16;
/// Four bytes of the name, two that say how long before the last row.
const ENTRY: usize = 6;

/// On which page a name is.
pub(super) fn page(name: u64) -> i64 {
    (name % PAGES.unsigned_abs()).cast_signed()
}

/// As much of a name as a page has. The lowest bits are the page's; a key's name has no highest ones. It may point to a row
/// that has not the name, one time in thousands, so whoever looks compares the row's own.
fn mark(name: u64) -> [u8; 4] {
    let [.., a, b, c, d] = (name / PAGES.unsigned_abs()).to_be_bytes();
    [a, b, c, d]
}

/// Gathers the names of rows up to `last`.
pub(super) struct Pages {
    last: i64,
    pages: Vec<Vec<[u8; ENTRY]>>,
}

impl Pages {
    pub(super) fn new(last: i64) -> Pages {
        Pages {
            last,
            pages: vec![Vec::new(); PAGES.unsigned_abs() as usize],
        }
    }

    /// A row too far before the last one is left out; [`ROWS`] rows are near enough.
    pub(super) fn add(&mut self, seq: i64, name: u64) {
        let before = u16::try_from(self.last - seq).ok().map(u16::to_be_bytes);
        let page = usize::try_from(page(name)).ok();
        if let (Some([x, y]), Some(page)) = (before, page.and_then(|page| self.pages.get_mut(page))) {
            let [a, b, c, d] = mark(name);
            page.push([a, b, c, d, x, y]);
        }
    }

    /// The pages that have something on them, with their numbers.
    pub(super) fn finish(self) -> impl Iterator<Item = (i64, Vec<u8>)> {
        let pages = (0..).zip(self.pages).filter(|(_, page)| !page.is_empty());
        pages.map(|(number, mut page)| {
            page.sort_unstable();
            (number, page.concat())
        })
    }
}

/// The rows of a page that may have the name, newest first; none where the page is damaged.
pub(super) fn search(page: &[u8], name: u64, last: i64) -> Option<impl Iterator<Item = i64>> {
    let (entries, rest) = page.as_chunks::<ENTRY>();
    let mark = mark(name);
    let from = entries.partition_point(|[a, b, c, d, ..]| [*a, *b, *c, *d] < mark);
    let found = entries
        .iter()
        .skip(from)
        .take_while(move |[a, b, c, d, ..]| [*a, *b, *c, *d] == mark);
    rest.is_empty()
        .then(|| found.map(move |[.., x, y]| last - i64::from(u16::from_be_bytes([*x, *y]))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [JRN-2] Each name leads to its rows, newest first, wherever the bits that tell names apart are.
    #[test]
    fn a_name_leads_to_its_rows() {
        let names: Vec<u64> = (0..500u64)
            .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (n % 2 * 16))
            .collect();
        let mut pages = Pages::new(9000);
        for (seq, name) in (0..).zip(&names) {
            pages.add(9000 - seq, *name);
            pages.add(5000 + seq, *name);
        }
        let pages: Vec<(i64, Vec<u8>)> = pages.finish().collect();
        assert_eq!(pages.len(), 16);
        for (seq, name) in (0..).zip(&names) {
            let (_, bytes) = pages.iter().find(|(number, _)| *number == page(*name)).unwrap();
            let found: Vec<i64> = search(bytes, *name, 9000).unwrap().collect();
            assert_eq!(found, [9000 - seq, 5000 + seq]);
        }
        assert_eq!(search(&pages[0].1, 16 * 77, 9000).unwrap().count(), 0);
    }

    /// [JRN-9] A page that is cut is damage, and neither a panic nor an answer.
    #[test]
    fn a_cut_page_is_no_answer() {
        assert!(search(&[0; 13], 7, 100).is_none());
        assert_eq!(search(&[], 7, 100).unwrap().count(), 0);
    }
}
