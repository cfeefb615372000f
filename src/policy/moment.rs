//! Times as approvals, audit lines and events tell them: RFC 3339 in UTC, with milliseconds.

use std::time::Duration;

use jiff::Timestamp;

/// The text of a time, such as `2026-01-31T09:30:00.000Z`.
#[must_use]
pub fn rfc3339(time: Timestamp) -> String {
    format!("{:.3}", to_millisecond(time))
}

/// The time without what is smaller than a millisecond, so that its text is all of it.
pub(super) fn to_millisecond(time: Timestamp) -> Timestamp {
    from_millisecond(time.as_millisecond())
}

/// The time after a while; the last one there is if that is too late for any calendar.
pub(super) fn after(time: Timestamp, life: Duration) -> Timestamp {
    let life = i64::try_from(life.as_millis()).unwrap_or(i64::MAX);
    from_millisecond(time.as_millisecond().saturating_add(life))
}

fn from_millisecond(millisecond: i64) -> Timestamp {
    // Whole seconds, because not every last millisecond is one that can be made.
    let (first, last) = (Timestamp::MIN.as_second(), Timestamp::MAX.as_second());
    Timestamp::from_millisecond(millisecond.clamp(first * 1000, last * 1000)).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_utc_with_milliseconds() {
        let time: Timestamp = "2026-01-31T10:30:00.1239+01:00".parse().unwrap();

        assert_eq!(rfc3339(time), "2026-01-31T09:30:00.123Z");
        assert_eq!(rfc3339(Timestamp::UNIX_EPOCH), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn no_life_is_too_long_for_the_calendar() {
        let last = after(Timestamp::UNIX_EPOCH, Duration::MAX);

        assert_eq!(rfc3339(last).parse::<Timestamp>().unwrap(), last);
        assert_eq!(to_millisecond(Timestamp::MIN), rfc3339(Timestamp::MIN).parse().unwrap());
    }
}
