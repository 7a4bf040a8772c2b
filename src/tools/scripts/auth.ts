/** Largest script, in bytes: a larger file is not a script but a mistake. */
export const SCRIPT_BYTES_MAX = 4 * 1024 * 1024;

/** Under this alias a python task finds the credential that `script.source.auth` names. */
export const SCRIPT_AUTH = "script";
