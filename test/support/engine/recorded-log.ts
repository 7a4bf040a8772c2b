import type { LogFields, Logger } from "../../../src/platform/telemetry/logger.ts";

/** One line as it was logged. */
export interface LogLine {
  level: "debug" | "info" | "warn" | "error";
  fields: LogFields;
  message: string;
}

/** A log that a test reads and waits for. */
export interface RecordedLog extends Logger {
  readonly lines: readonly LogLine[];
  /** The first line for which this holds, also one that was logged before. */
  until(holds: (line: LogLine) => boolean): Promise<LogLine>;
  /** All lines with this text in them. */
  matching(text: string): LogLine[];
}

/** An empty log. */
export function recordLog(): RecordedLog {
  const lines: LogLine[] = [];
  const waiting = new Set<(line: LogLine) => void>();
  const write = (level: LogLine["level"]) => (fields: LogFields, message: string) => {
    const line = { level, fields, message };
    lines.push(line);
    for (const tell of waiting) tell(line);
  };
  return {
    lines,
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    until(holds) {
      const found = lines.find(holds);
      if (found !== undefined) return Promise.resolve(found);
      return new Promise((resolve) => {
        const tell = (line: LogLine) => {
          if (!holds(line)) return;
          waiting.delete(tell);
          resolve(line);
        };
        waiting.add(tell);
      });
    },
    matching: (text) => lines.filter(({ message }) => message.includes(text)),
  };
}
