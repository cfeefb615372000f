//! JSON as such: nothing in here knows of schemas, tools or calls.
//!
//! Read `invisible`: the characters that a reader does not see, which are escaped or left out wherever text of others is shown.

pub mod invisible;
