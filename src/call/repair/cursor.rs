//! A place in a text that is almost JSON.

/// What is left of a text.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a>(pub(super) &'a str);

impl<'a> Cursor<'a> {
    pub(super) fn peek(self) -> Option<char> {
        self.0.chars().next()
    }

    pub(super) fn skip(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.skip(next.len_utf8());
        Some(next)
    }

    pub(super) fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}');
    }

    pub(super) fn take_if(&mut self, prefix: &str) -> bool {
        let is_there = self.0.starts_with(prefix);
        if is_there {
            self.skip(prefix.len());
        }
        is_there
    }

    /// One character of a JSON string, or an escape that stands for one; the escape is told.
    pub(super) fn next_unescaped(&mut self) -> Option<(char, bool)> {
        match self.next()? {
            '\\' => Some((self.escape()?, true)),
            plain => Some((plain, false)),
        }
    }

    pub(super) fn escape(&mut self) -> Option<char> {
        Some(match self.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let high = self.unit()?;
                if (0xD800..0xDC00).contains(&high) && self.take_if("\\u") {
                    let low = self.unit()?;
                    char::decode_utf16([high, low]).next()?.ok()?
                } else {
                    char::from_u32(u32::from(high))?
                }
            }
            other => other,
        })
    }

    fn unit(&mut self) -> Option<u16> {
        let digits = self.0.get(..4)?;
        self.skip(4);
        u16::from_str_radix(digits, 16).ok()
    }

    /// A number or a word.
    pub(super) fn token(&mut self) -> &'a str {
        let end = self.0.find(|letter: char| letter.is_whitespace() || ",:{}[]\"'/#".contains(letter));
        self.skip(end.unwrap_or(self.0.len()))
    }
}
