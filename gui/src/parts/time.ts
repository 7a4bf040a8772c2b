/** `1.2 s`, `3 min 04 s`, `2 h 05 min`: as much as a person wants to know of a duration. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${pad(Math.floor((ms % 60_000) / 1_000))} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${pad(minutes % 60)} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** `12 s ago`, `16 min ago`, `in 12 s`, `in 3 min 04 s`: past times are rounded, so that a page is not full of running digits. */
export function agoText(at: number, now: number): string {
  const ms = now - at;
  if (Math.abs(ms) < 1_000) return "now";
  if (ms > 0) return `${roughText(ms)} ago`;
  return `in ${-ms < 60_000 ? roughText(-ms) : durationText(-ms)}`;
}

function roughText(ms: number): string {
  if (ms < 60_000) return `${Math.floor(ms / 1_000)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min`;
  return ms < 172_800_000 ? `${Math.floor(ms / 3_600_000)} h` : `${Math.floor(ms / 86_400_000)} d`;
}

/** The moment to the millisecond in the reader's own zone, as logs sort. */
export function momentText(at: number): string {
  const date = new Date(at);
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${clockText(at)}`;
}

/** `14:03:07.120` in the reader's own zone. */
export function clockText(at: number): string {
  const date = new Date(at);
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(pad).join(":");
  return `${time}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** `10:00` today, `Mon 06:00` within a week, else `12 Dec 06:00`; with seconds where it is not a whole minute. */
export function whenText(at: number, now: number): string {
  const second = at % 60_000 < 1_000 ? {} : { second: "2-digit" as const };
  const time = new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...second });
  if (new Date(at).toDateString() === new Date(now).toDateString()) return time;
  const day: Intl.DateTimeFormatOptions =
    Math.abs(at - now) < 6 * 86_400_000 ? { weekday: "short" } : { day: "numeric", month: "short" };
  return `${new Date(at).toLocaleDateString("en-GB", day)} ${time}`;
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}
