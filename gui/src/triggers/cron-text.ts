const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const NAMES = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/** What the patterns mean that people write most: `weekdays at 06:00`. Empty for all others: the pattern says it itself. */
export function cronText(pattern: string): string {
  const fields = pattern.trim().split(/\s+/);
  // Of six, the first are seconds.
  if (fields.length === 6 && fields[0] !== "0") return "";
  const [minute = "", hour = "", date = "", month = "", day = ""] = fields.slice(-5);
  if (fields.length < 5 || month !== "*") return "";
  const step = /^\*\/(\d+)$/.exec(minute)?.[1];
  if (hour === "*" && date === "*" && day === "*") {
    if (minute === "*") return "every minute";
    if (step !== undefined) return `every ${step} minutes`;
    return /^\d+$/.test(minute) ? `every hour at minute ${Number(minute)}` : "";
  }
  if (!/^\d{1,2}$/.test(minute) || !/^\d{1,2}$/.test(hour)) return "";
  const at = `at ${hour.padStart(2, "0")}:${minute.padStart(2, "0")}`;
  if (date === "*") {
    const when = daysText(day);
    return when === undefined ? "" : `${when} ${at}`;
  }
  return day === "*" && /^\d{1,2}$/.test(date) ? `on day ${Number(date)} of the month ${at}` : "";
}

function daysText(day: string): string | undefined {
  if (day === "*") return "every day";
  if (/^(1-5|mon-fri)$/i.test(day)) return "on weekdays";
  const number = NAMES.includes(day.toLowerCase()) ? NAMES.indexOf(day.toLowerCase()) : Number(day);
  const name = /^[\w]+$/.test(day) ? DAYS[number] : undefined;
  return name === undefined ? undefined : `on ${name}s`;
}
