/**
 * How commands of findings begin that ask the database: psql with the address in FLOW_DATABASE_URL but without its password, which
 * every user of the machine could read among the arguments. psql asks for it on the terminal.
 */
export const PSQL = String.raw`psql "$(printf %s "$FLOW_DATABASE_URL" | sed -E 's#(//[^:@/?]*):[^/?]*@#\1@#; s#([?&])password=[^&]*&?#\1#')"`;
