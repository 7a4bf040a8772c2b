#!/usr/bin/env node
// `flow-doctor detect` is `flow doctor detect`: one program, and one name more for monitors and crontabs.
process.argv.splice(2, 0, "doctor");
await import("../dist/flow/main.js");
