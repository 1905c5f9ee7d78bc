/** The address of a database on a server. */

export { readAddress, type Address } from "../../core/base/database-place.ts";
