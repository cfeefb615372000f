//! The example of a program without Python, run as it is.

#[allow(dead_code, reason = "its `main` is called here")]
#[path = "../../../examples/native_tool.rs"]
mod native_tool;

#[test]
fn the_example_shows_what_it_asserts() {
    native_tool::main().expect("the example runs to its end");
}
