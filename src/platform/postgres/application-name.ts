/**
 * What every database connection of this program calls itself (`application_name`). The embedded server is not stopped
 * while one is left.
 */
export const APPLICATION_NAME = "flow";
