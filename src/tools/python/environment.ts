/**
 * What an interpreter sees of our environment: how to find programs, modules and certificates, and how to speak. Nothing
 * else, because settings and secrets of the service stand there too.
 */
const PASSED_ON = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "LANG",
  "LC_ALL",
  "LC_CTYPE",
  "TZ",
  "TMPDIR",
  "PYTHONPATH",
  "PYTHONHOME",
  "VIRTUAL_ENV",
  "LD_LIBRARY_PATH",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
] as const;

/** The whole environment of an interpreter, made from ours. */
export function pythonEnvironment(ours: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const env: Record<string, string> = {
    PYTHONUNBUFFERED: "1",
    PYTHONIOENCODING: "utf-8",
    PYTHONUTF8: "1",
    PYTHONDONTWRITEBYTECODE: "1",
  };
  for (const name of PASSED_ON) {
    const value = ours[name];
    if (value !== undefined) env[name] = value;
  }
  return env;
}
