// `node bin/build.js program page tests`: installs and builds these parts of a checkout, as far as they are missing or out of
// date. Plain Node: npm's scripts begin with it, also where nothing is installed yet.
import { PART_NAMES, staleParts } from "./parts.js";
import { isWithinSetUp, setUp } from "./set-up.js";

const words = process.argv.slice(2);
const unknown = words.filter((word) => !PART_NAMES.includes(word));
if (unknown.length > 0) {
  process.stderr.write(`bin/build.js makes ${PART_NAMES.join(", ")}, not ${unknown.join(", ")}.\n`);
  process.exit(2);
}
// npm runs "prepare" at the end of an installation: of one that a set-up runs, the set-up does the rest.
const wanted = ["packages", ...words];
if (!isWithinSetUp() && staleParts(wanted).length > 0) await setUp(wanted);
