import assert from "node:assert/strict";
import type { Terminal } from "../../src/cli/terminal/live-region.ts";
import { textWidth } from "../../src/cli/terminal/text.ts";

/**
 * A terminal that understands what a live tree uses: line breaks, wrapping, scrolling, moving up, clearing, and the cursor
 * that is hidden and shown. Anything else is an error of the test.
 */
export class FakeTerminal implements Terminal {
  width: number;
  height: number;
  isCursorShown = true;
  writes = 0;
  #lines: string[] = [""];
  #row = 0;
  #column = 0;

  constructor(width: number, height: number) {
    this.width = width;
    this.height = height;
  }

  columns(): number {
    return this.width;
  }

  rows(): number {
    return this.height;
  }

  write(text: string): void {
    this.writes += 1;
    let rest = text;
    while (rest !== "") {
      const sequence = /^\u001b\[(\??)(\d*)([A-Za-z])/.exec(rest);
      const token = sequence?.[0] ?? String.fromCodePoint(rest.codePointAt(0) ?? 0);
      if (sequence === null) this.#put(token);
      else this.#control(`${sequence[1]}${sequence[3]}`, Number(sequence[2] || 1), Number(sequence[2] || 0));
      rest = rest.slice(token.length);
    }
  }

  /** Everything that was ever on the screen, what has scrolled away included, without empty lines at the end. */
  text(): string[] {
    const lines = this.#lines.map((line) => line.trimEnd());
    while (lines.at(-1) === "") lines.pop();
    return lines;
  }

  #put(character: string): void {
    if (character === "\r") this.#column = 0;
    else if (character === "\n") this.#breakLine();
    else {
      const width = textWidth(character);
      if (this.#column + width > this.width) this.#breakLine();
      const line = this.#line().padEnd(this.#column);
      this.#lines[this.#row] = line.slice(0, this.#column) + character + line.slice(this.#column + width);
      this.#column += width;
    }
  }

  #breakLine(): void {
    this.#row += 1;
    this.#column = 0;
    if (this.#row === this.#lines.length) this.#lines.push("");
  }

  #control(name: string, count: number, mode: number): void {
    switch (name) {
      case "A":
        // What has scrolled off the top cannot be reached.
        this.#row = Math.max(this.#row - count, this.#lines.length - this.height, 0);
        return;
      case "K":
        this.#lines[this.#row] = this.#line().slice(0, this.#column);
        return;
      case "J":
        this.#lines[this.#row] = this.#line().slice(0, this.#column);
        this.#lines.length = this.#row + 1;
        return;
      case "?l":
      case "?h":
        assert.equal(count, 25);
        this.isCursorShown = name === "?h";
        return;
      case "m":
        return;
      default:
        assert.fail(`unexpected control sequence ${name} ${mode}`);
    }
  }

  #line(): string {
    return this.#lines[this.#row] ?? "";
  }
}
