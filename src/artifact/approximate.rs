//! The place in a text that is most like a pattern: approximate search by edit distance.
//!
//! [`Search`] finds all ends of occurrences with the fewest edits. It is Sellers' algorithm, computed by Myers' bit
//! vectors: one word of the machine holds 64 rows of a column. A long pattern in a long text is looked for only around its
//! own pieces: an occurrence with at most *k* edits has at least one of *k* + 1 pieces unchanged. Few and long pieces come first,
//! because the short ones of a long pattern are words that occur everywhere.

use std::ops::Range;

use ahash::AHashMap;

/// The number of steps, of one word each, that a search may take: some 30 milliseconds.
const STEPS: usize = 16_000_000;

/// The lengths of the pieces that a filtered search looks for, one after the other.
const PIECES: [usize; 3] = [128, 32, 8];

/// The largest number of words in the masks of a pattern: 32 MiB.
const MASKS: usize = 1 << 22;

/// The bits of a word.
const WORD: usize = 64;

/// A pattern and a text, as numbers: zero is a letter that the pattern does not have.
pub(super) struct Search {
    pattern: Vec<u32>,
    text: Vec<u32>,
    forward: Masks,
    backward: Masks,
}

/// The ends of the occurrences with the fewest edits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Nearest {
    /// The number of edits.
    pub(super) distance: usize,
    /// The ends of all occurrences with this number, and with one more, in order.
    pub(super) ends: Vec<(usize, usize)>,
}

/// For each letter the rows of the pattern that have it, 64 in a word.
struct Masks {
    rows: usize,
    words: usize,
    bits: Vec<u64>,
}

impl Masks {
    fn of(pattern: impl ExactSizeIterator<Item = u32>, letters: usize) -> Self {
        let rows = pattern.len();
        let words = rows.div_ceil(WORD);
        let mut bits = vec![0; words * (letters + 1)];
        for (row, letter) in pattern.enumerate() {
            bits[letter as usize * words + row / WORD] |= 1 << (row % WORD);
        }
        Self { rows, words, bits }
    }

    /// Calls `report` with the number of edits between the pattern and the best part of the text that ends after each
    /// letter. If it is anchored, the part begins with the text.
    fn scan(&self, text: impl Iterator<Item = u32>, is_anchored: bool, mut report: impl FnMut(usize, usize)) {
        let last = 1_u64 << ((self.rows - 1) % WORD);
        let mut columns: Vec<(u64, u64)> = vec![(u64::MAX, 0); self.words];
        let mut score = self.rows;
        for (place, letter) in text.enumerate() {
            let masks = &self.bits[letter as usize * self.words..][..self.words];
            // The difference to the column before, above the word: more, less.
            let (mut more, mut less) = (u64::from(is_anchored), 0);
            let (mut last_more, mut last_less) = (0, 0);
            for ((up, down), equal) in columns.iter_mut().zip(masks) {
                let across = *equal | *down;
                let equal = *equal | less;
                let diagonal = (((equal & *up).wrapping_add(*up)) ^ *up) | equal;
                (last_more, last_less) = (*down | !(diagonal | *up), *up & diagonal);
                let (shifted_more, shifted_less) = ((last_more << 1) | more, (last_less << 1) | less);
                (more, less) = (last_more >> (WORD - 1), last_less >> (WORD - 1));
                (*up, *down) = (shifted_less | !(across | shifted_more), shifted_more & across);
            }
            if last_more & last != 0 {
                score += 1;
            } else if last_less & last != 0 {
                score -= 1;
            }
            report(place + 1, score);
        }
    }
}

impl Search {
    /// Prepares the search for a pattern, which must not be empty; none if it has too many different letters for its length.
    pub(super) fn new(pattern: &[char], text: &[char]) -> Option<Self> {
        let mut numbers: AHashMap<char, u32> = AHashMap::new();
        let mut ascii = [0_u32; 128];
        let pattern: Vec<u32> = pattern
            .iter()
            .map(|letter| {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX - 1) + 1;
                let number = *numbers.entry(*letter).or_insert(next);
                if letter.is_ascii() {
                    ascii[*letter as usize] = number;
                }
                number
            })
            .collect();
        let number = |letter: &char| match ascii.get(*letter as usize) {
            Some(number) => *number,
            None => numbers.get(letter).copied().unwrap_or_default(),
        };
        if pattern.len().div_ceil(WORD) * (numbers.len() + 1) > MASKS {
            return None;
        }
        let text = text.iter().map(number).collect();
        let forward = Masks::of(pattern.iter().copied(), numbers.len());
        let backward = Masks::of(pattern.iter().rev().copied(), numbers.len());
        Some(Self { pattern, text, forward, backward })
    }

    /// Finds the occurrences with the fewest edits; none if the text is empty or too long to search for this pattern.
    pub(super) fn nearest(&self) -> Option<Nearest> {
        if self.text.is_empty() {
            return None;
        }
        self.near_pieces().or_else(|| {
            let whole = 0..self.text.len();
            (whole.len() * self.forward.words <= STEPS).then(|| self.in_windows(std::slice::from_ref(&whole))).flatten()
        })
    }

    /// The same, if there is an occurrence with so few edits that one of many pieces of the pattern is unchanged.
    fn near_pieces(&self) -> Option<Nearest> {
        PIECES.into_iter().find_map(|length| self.near_pieces_of(length))
    }

    /// The same for pieces of at least this length.
    fn near_pieces_of(&self, length: usize) -> Option<Nearest> {
        // Ends with one edit more are reported as well, so there is one piece more.
        let edits = (self.pattern.len() / length).checked_sub(2).filter(|edits| *edits > 0)?;
        let windows = self.windows(edits + 1, length);
        let length: usize = windows.iter().map(ExactSizeIterator::len).sum();
        if length * self.forward.words > STEPS {
            return None;
        }
        self.in_windows(&windows).filter(|nearest| nearest.distance <= edits)
    }

    /// The parts of the text where an occurrence with at most this many edits can be. The first letters of its pieces, `searched`
    /// of them, are looked for.
    fn windows(&self, edits: usize, searched: usize) -> Vec<Range<usize>> {
        const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
        let add = |sum: u64, letter: u32| sum.wrapping_mul(BASE).wrapping_add(u64::from(letter));
        let hash = |letters: &[u32]| letters.iter().fold(0_u64, |sum, letter| add(sum, *letter));
        // One piece more than edits.
        let length = self.pattern.len() / (edits + 1);
        // The first and the last offset of each piece. The windows of those between them are inside of the two.
        let mut offsets: AHashMap<u64, (usize, usize)> = AHashMap::new();
        let mut marks = vec![false; 1 << 16];
        let mark = |sum: u64| usize::try_from(sum >> 48).unwrap_or_default();
        for piece in 0..=edits {
            let offset = piece * length;
            let sum = hash(&self.pattern[offset..offset + searched]);
            marks[mark(sum)] = true;
            offsets.entry(sum).and_modify(|(_, last)| *last = offset).or_insert((offset, offset));
        }
        let first = (0..searched).fold(1_u64, |power, _| power.wrapping_mul(BASE));
        let mut windows: Vec<Range<usize>> = Vec::new();
        let mut sum = 0_u64;
        for (place, letter) in self.text.iter().enumerate() {
            sum = add(sum, *letter);
            if place >= searched {
                sum = sum.wrapping_sub(first.wrapping_mul(u64::from(self.text[place - searched])));
            }
            if place + 1 < searched || !marks[mark(sum)] {
                continue;
            }
            let Some((first, last)) = offsets.get(&sum) else { continue };
            let mut start = (place + 1).saturating_sub(searched + last + edits);
            let mut end = (place + 1 + self.pattern.len() + edits - searched - first).min(self.text.len());
            // All windows up to here begin before the place, so they overlap if this one begins before their end.
            while let Some(before) = windows.pop_if(|before| start <= before.end) {
                (start, end) = (start.min(before.start), end.max(before.end));
            }
            windows.push(start..end);
        }
        windows
    }

    fn in_windows(&self, windows: &[Range<usize>]) -> Option<Nearest> {
        let mut best = usize::MAX - 1;
        let mut ends: Vec<(usize, usize)> = Vec::new();
        for window in windows {
            self.forward.scan(self.text[window.clone()].iter().copied(), false, |end, distance| {
                if distance < best {
                    best = distance;
                    ends.retain(|(_, distance)| *distance <= best + 1);
                }
                if distance <= best + 1 {
                    ends.push((window.start + end, distance));
                }
            });
        }
        (!ends.is_empty()).then_some(Nearest { distance: best, ends })
    }

    /// The starts of the parts that end at `end` and differ from the pattern by at most `limit` edits, with their edits.
    pub(super) fn starts(&self, end: usize, limit: usize) -> Vec<(usize, usize)> {
        let from = end.saturating_sub(self.pattern.len() + limit);
        let mut starts = Vec::new();
        self.backward.scan(self.text[from..end].iter().rev().copied(), true, |length, distance| {
            if distance <= limit {
                starts.push((end - length, distance));
            }
        });
        starts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The edit distance of the pattern to the best part of the text that ends after each letter, by the textbook.
    fn by_table(pattern: &[char], text: &[char], is_anchored: bool) -> Vec<usize> {
        let mut column: Vec<usize> = (0..=pattern.len()).collect();
        text.iter()
            .enumerate()
            .map(|(place, letter)| {
                let mut diagonal = column[0];
                column[0] = if is_anchored { place + 1 } else { 0 };
                for row in 1..=pattern.len() {
                    let substituted = diagonal + usize::from(pattern[row - 1] != *letter);
                    diagonal = column[row];
                    column[row] = substituted.min(diagonal + 1).min(column[row - 1] + 1);
                }
                column[pattern.len()]
            })
            .collect()
    }

    fn letters(text: &str) -> Vec<char> {
        text.chars().collect()
    }

    proptest! {
        #[test]
        fn the_distances_are_those_of_the_table(pattern in "[abc]{1,150}", text in "[abcd]{0,300}", is_anchored: bool) {
            let (pattern, text) = (letters(&pattern), letters(&text));
            let search = Search::new(&pattern, &text).unwrap();
            let mut distances = Vec::new();

            search.forward.scan(search.text.iter().copied(), is_anchored, |_, distance| distances.push(distance));

            prop_assert_eq!(distances, by_table(&pattern, &text, is_anchored));
        }

        #[test]
        fn a_filtered_search_finds_what_a_whole_one_finds(
            text in "[a-h]{600,900}", from in 0..80_usize, length in 40..450_usize, typos in prop::collection::vec(0..40_usize, 0..3)
        ) {
            let text = letters(&text);
            let mut pattern = text[from..from + length].to_vec();
            for typo in typos {
                pattern[typo] = 'z';
            }
            let search = Search::new(&pattern, &text).unwrap();

            let filtered = search.near_pieces();

            let whole = search.in_windows(std::slice::from_ref(&(0..text.len()))).unwrap();
            match filtered {
                Some(filtered) => prop_assert_eq!(filtered, whole),
                None => prop_assert!(whole.distance > pattern.len() / PIECES[2] - 2),
            }
        }
    }

    #[test]
    fn starts_are_those_of_the_best_parts() {
        let search = Search::new(&letters("abc"), &letters("xxabxc")).unwrap();

        assert_eq!(search.nearest(), Some(Nearest { distance: 1, ends: vec![(3, 2), (4, 1), (5, 1), (6, 1)] }));
        assert_eq!(search.starts(6, 1), [(2, 1)]);
        assert_eq!(search.starts(4, 1), [(2, 1)]);
    }
}
