#!/usr/bin/env node
// The published entry: the compiled program. `npm ci` compiles it (script "prepare").
import "../dist/flow/main.js";
