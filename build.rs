//! Sets pyo3's `cfg` flags, which name the version of CPython, for the bindings, and compiles the supervisor of programs and the
//! locks of SQLite.

fn main() {
    #[cfg(feature = "python")]
    pyo3_build_config::use_pyo3_cfgs();
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SUPERVISOR}");
    println!("cargo::rerun-if-changed={LOCKS}");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        compile_supervisor();
        compile_locks();
    }
}

const SUPERVISOR: &str = "src/process/supervisor.c";

/// Compiles an executable that the library embeds. It needs no C library on the usual processors. On others it is linked with
/// one, statically if the system has a static one.
fn compile_supervisor() {
    let folder = std::env::var_os("OUT_DIR").unwrap_or_default();
    let output = std::path::Path::new(&folder).join("supervisor");
    let compiler = cc::Build::new().opt_level_str("s").debug(false).get_compiler();
    let architecture = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let has_own_start = ["x86_64", "aarch64"].contains(&architecture.as_str());
    let alone: &[&str] = if has_own_start { &["-ffreestanding", "-nostdlib", "-fno-stack-protector"] } else { &[] };
    let compile = |options: &[&str]| {
        let mut command = compiler.to_command();
        command.args(alone).args(options).args(["-s", SUPERVISOR, "-o"]).arg(&output);
        command.output().unwrap_or_else(|error| panic!("cannot run the C compiler {command:?}: {error}"))
    };
    if compile(&["-static"]).status.success() {
        return;
    }
    let result = compile(&[]);
    assert!(result.status.success(), "cannot compile {SUPERVISOR}: {}", String::from_utf8_lossy(&result.stderr));
}

const LOCKS: &str = "src/store/locks.c";

/// Compiles the locks of SQLite into the library. Nothing calls them by name, so they are linked as a whole.
fn compile_locks() {
    let mut build = cc::Build::new();
    build.file(LOCKS).std("c11").warnings_into_errors(false).cargo_metadata(false);
    if let Some(headers) = std::env::var_os("DEP_SQLITE3_INCLUDE") {
        build.include(headers);
    }
    build.compile("toolcrib_locks");
    println!("cargo::rustc-link-search=native={}", std::env::var("OUT_DIR").unwrap_or_default());
    println!("cargo::rustc-link-lib=static:+whole-archive=toolcrib_locks");
}
